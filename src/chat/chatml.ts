/**
 * The template for models that bring none, or one that cannot be used: ChatML, which most models
 * have seen.
 */

export const chatMlTemplate = `{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
`;
