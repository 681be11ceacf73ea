/** What the server says of itself and of its model. */
import type { Exchange } from "../exchange.ts";
import type { Service } from "../service.ts";
import type { OfferedModel } from "../shelf.ts";
import { modelNotFound } from "../service.ts";
import { effectiveSampling } from "../work-request.ts";

/** GET /live: 200 as long as the process answers, whatever its model does. */
export function live(): Response {
  return Response.json({ status: "alive" });
}

/** GET /health: 200 only if requests are served; one that is unloaded loads for the next. */
export function health({ service }: Exchange): Response {
  const { host } = service;
  const { state } = host;
  const body = {
    status: state,
    model: host.model.id,
    ...(state === "loading" && { progress: Number(host.progress.toFixed(3)) }),
    ...(host.facts && { context: host.facts.contextTokens }),
    running: host.runningCount,
    waiting: host.waitingCount,
    uptime_s: Math.floor(Date.now() / 1000) - service.startedS,
  };
  if (state === "ready" || state === "unloaded") return Response.json(body);
  return Response.json(body, { status: 503, headers: { "retry-after": "2" } });
}

/** GET /metrics */
export async function metrics({ service }: Exchange): Promise<Response> {
  const text = await service.metrics.text();
  return new Response(text, { headers: { "content-type": service.metrics.contentType } });
}

/** More is known of the one that is loaded. */
function describeModel({ host, startedS }: Service, { id, sizeBytes }: OfferedModel) {
  const isCurrent = id === host.model.id;
  return {
    id,
    object: "model",
    created: startedS,
    owned_by: "zinc",
    loaded: isCurrent && host.state === "ready",
    ...(sizeBytes !== undefined && { size_bytes: sizeBytes }),
    ...(isCurrent &&
      host.facts && {
        context_length: host.facts.contextTokens,
        meta: {
          name: host.facts.name,
          architecture: host.facts.architecture,
          n_ctx: host.facts.contextTokens,
          n_ctx_train: host.facts.trainedContextTokens,
          n_vocab: host.facts.vocabularySize,
          n_embd: host.facts.width,
        },
      }),
  };
}

/** GET /v1/models */
export function models({ service }: Exchange): Response {
  const data = service.options.shelf.list().map((one) => describeModel(service, one));
  return Response.json({ object: "list", data });
}

/** GET /v1/models/{id}; the id may hold slashes, encoded or not. */
export function model({ service, request }: Exchange): Response {
  const path = new URL(request.url).pathname.replace(/\/{2,}/g, "/").replace(/\/$/, "");
  const id = decodeText(path.slice("/v1/models/".length));
  const known = service.options.shelf.find(id);
  if (known !== undefined) return Response.json(describeModel(service, known));
  throw modelNotFound(id, service.host.model.id);
}

function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** GET /props */
export function props({ service }: Exchange): Response {
  const { host, options } = service;
  const facts = host.requireReady();
  return Response.json({
    model: host.model.id,
    model_name: facts.name,
    architecture: facts.architecture,
    n_ctx: facts.contextTokens,
    n_ctx_train: facts.trainedContextTokens,
    n_vocab: facts.vocabularySize,
    n_embd: facts.width,
    total_slots: facts.parallel,
    chat_template: facts.template ?? null,
    chat_template_source: facts.templateSource ?? null,
    default_generation_settings: effectiveSampling(options.sampling),
    device: { name: facts.deviceName, bytes: facts.deviceBytes },
    body_bytes_max: service.bodyBytesMax,
    build_info: `zinc ${options.version}`,
  });
}
