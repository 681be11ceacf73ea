/**
 * What each shell must be told once. All of them ask zinc itself, at every press of the key, with
 * the words up to the cursor, so that they never offer what this executable does not have. It gets
 * no stdin: what is typed meanwhile belongs to the shell.
 */

/** "zinc", or the path by which it was called, with ~ for the home folder. */
const bash = `# Completion of zinc for bash.
_zinc() {
  local program=\${1/#\\~/$HOME} current=\${COMP_WORDS[COMP_CWORD]} word rest
  # Bash breaks words at "=" too: what stands behind it is completed alone.
  [[ $current == "=" ]] && current=
  COMPREPLY=()
  while IFS=$'\\t' read -r word rest; do
    if [[ $word == ":files" ]]; then
      compopt -o filenames -o default
      while IFS= read -r word; do
        COMPREPLY+=("$word")
      done < <(compgen -f -- "$current")
    else
      COMPREPLY+=("$word")
    fi
  done < <("$program" completion candidates -- "\${COMP_WORDS[@]:1:COMP_CWORD}" \\
    </dev/null 2>/dev/null)
}
complete -F _zinc zinc
`;

const zsh = `#compdef zinc
# Completion of zinc for zsh.
_zinc() {
  local line files=
  local -a described
  while IFS= read -r line; do
    if [[ $line == ":files" ]]; then
      files=yes
    else
      described+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
    fi
  done < <("\${(Q)words[1]/#\\~/$HOME}" completion candidates -- \\
    "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" </dev/null 2>/dev/null)
  (( \${#described} )) && _describe zinc described
  if [[ -n $files ]]; then
    [[ $PREFIX == --*=* ]] && compset -P '*='
    _files
  fi
}
if [[ $funcstack[1] == _zinc ]]; then
  _zinc "$@"
else
  compdef _zinc zinc
fi
`;

const fish = `# Completion of zinc for fish.
function __zinc_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l program (string replace -r '^~' $HOME -- $words[1])
  for line in ($program completion candidates -- $words[2..-1] "$current" </dev/null 2>/dev/null)
    if test "$line" = ":files"
      __fish_complete_path "$current"
    else
      printf '%s\\n' "$line"
    end
  end
end
complete -c zinc -f -a '(__zinc_complete)'
`;

export const scripts: Readonly<Record<string, string>> = { bash, zsh, fish };
