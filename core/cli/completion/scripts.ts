/** The scripts that shells complete by: tables of all places, and a function that finds the one of the cursor. */
import { type Candidate, type Place, ROOT } from "./places.ts";

export type Places = ReadonlyMap<string, Place>;

/** By the name of the shell. */
export const scripts: Readonly<Record<string, (places: Places) => string>> = { bash, zsh, fish };

/** No key of a table may be empty. */
const keyOf = (at: string) => (at === ROOT ? "." : `.${at}`);

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
const words = (all: readonly { readonly word: string }[]) => all.map(({ word }) => word).join(" ");

/** Entries of an associative array, without those that are empty unless all are wanted. */
function rows(
  places: Places,
  value: (place: Place) => string,
  form: (key: string, value: string) => string,
  all = false,
) {
  return [...places]
    .map(([at, place]) => ({ key: keyOf(at), text: value(place) }))
    .filter(({ text }) => all || text !== "")
    .map(({ key, text }) => `  ${form(key, text)}`)
    .join("\n");
}

function bash(places: Places): string {
  const table = (name: string, value: (place: Place) => string, all = false) =>
    `declare -gA _modhost_${name}=(\n${rows(places, value, (key, text) => `[${quoted(key)}]=${quoted(text)}`, all)}\n)`;
  return `# Completion of modhost for bash 4 or later: eval "$(modhost completion bash)"
${table("options", ({ options }) => words(options), true)}
${table("words", (place) => words(place.words))}
${table("valued", ({ valued }) => valued.join(" "))}
${table("names", ({ names = "" }) => names)}
_modhost() {
  local current=\${COMP_WORDS[COMP_CWORD]} place=. word next skip= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $skip ]]; then skip=; continue; fi
    if [[ $word == -* ]]; then
      [[ " \${_modhost_valued[$place]} \${_modhost_valued[.]} " == *" $word "* ]] && skip=1
      continue
    fi
    if [[ $place == . ]]; then next=.$word; else next="$place $word"; fi
    [[ -v _modhost_options["$next"] ]] && place=$next
  done
  [[ $skip ]] && return
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "\${_modhost_options[$place]}" -- "$current")
    return
  fi
  local found=\${_modhost_words[$place]}
  if [[ \${_modhost_names[$place]} ]]; then
    found+=" $("\${COMP_WORDS[0]}" completion names "\${_modhost_names[$place]}" 2>/dev/null)"
  fi
  [[ $found ]] && mapfile -t COMPREPLY < <(compgen -W "$found" -- "$current")
}
complete -o default -F _modhost modhost
`;
}

const described = (all: readonly Candidate[]) =>
  all.map(({ word, help }) => `${word.replaceAll(":", "\\:")}:${help.replaceAll("\n", " ")}`).join("\n");

function zsh(places: Places): string {
  const table = (name: string, value: (place: Place) => string, all = false) =>
    `typeset -gA _modhost_${name}=(\n${rows(places, value, (key, text) => `${quoted(key)} ${quoted(text)}`, all)}\n)`;
  return `#compdef modhost
# Completion of modhost for zsh: eval "$(modhost completion zsh)", or a file _modhost in a folder of $fpath
${table("options", ({ options }) => described(options), true)}
${table("words", (place) => described(place.words))}
${table("valued", ({ valued }) => valued.join(" "))}
${table("names", ({ names = "" }) => names)}
_modhost() {
  local place=. word next
  local -i skip=0
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if (( skip )); then skip=0; continue; fi
    if [[ $word == -* ]]; then
      [[ " \${_modhost_valued[$place]} \${_modhost_valued[.]} " == *" $word "* ]] && skip=1
      continue
    fi
    if [[ $place == . ]]; then next=.$word; else next="$place $word"; fi
    (( \${+_modhost_options[$next]} )) && place=$next
  done
  if (( skip )); then _files; return; fi
  local -a found
  if [[ \${words[CURRENT]} == -* ]]; then
    found=("\${(@f)_modhost_options[$place]}")
    _describe -o option found
    return
  fi
  [[ -n \${_modhost_words[$place]} ]] && found=("\${(@f)_modhost_words[$place]}")
  if [[ -n \${_modhost_names[$place]} ]]; then
    found+=("\${(@f)$(\${words[1]} completion names \${_modhost_names[$place]} 2>/dev/null)}")
  fi
  if (( $#found )); then _describe word found; else _files; fi
}
if [[ $funcstack[1] == _modhost ]]; then _modhost "$@"; else compdef _modhost modhost; fi
`;
}

function fish(places: Places): string {
  const text = (word: string) => `'${word.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", " ")}'`;
  const lines = (all: readonly Candidate[]) => all.map(({ word, help }) => `${text(word)}\\t${text(help)}`).join(" ");
  const cases = (value: (place: Place) => string) =>
    [...places]
      .flatMap(([at, place]) => {
        const body = value(place);
        return body === "" ? [] : [`    case ${text(keyOf(at))}\n      printf '%s\\n' ${body}`];
      })
      .join("\n");
  const known = [...places.keys()].map((at) => text(keyOf(at))).join(" ");
  const table = (name: string, value: (place: Place) => string) =>
    `function __modhost_${name}\n  switch $argv[1]\n${cases(value)}\n  end\nend`;
  return `# Completion of modhost for fish: modhost completion fish > ~/.config/fish/completions/modhost.fish
set -g __modhost_places ${known}
${table("options", ({ options }) => lines(options))}
${table("words", (place) => lines(place.words))}
${table("valued", ({ valued }) => valued.map(text).join(" "))}
${table("names", ({ names = "" }) => names)}
function __modhost_complete
  set -l tokens (commandline -opc)
  set -l current (commandline -ct)
  set -l place .
  set -l skip 0
  for word in $tokens[2..-1]
    if test $skip = 1
      set skip 0
      continue
    end
    if string match -q -- '-*' $word
      contains -- $word (__modhost_valued $place) (__modhost_valued .); and set skip 1
      continue
    end
    set -l next "$place $word"
    test $place = .; and set next .$word
    contains -- $next $__modhost_places; and set place $next
  end
  if test $skip = 1
    __fish_complete_path $current
    return
  end
  if string match -q -- '-*' $current
    __modhost_options $place
    return
  end
  set -l names (__modhost_names $place)
  set -l found (__modhost_words $place)
  test -n "$names"; and set -a found ($tokens[1] completion names $names 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path $current
  end
end
complete -c modhost -f -a '(__modhost_complete)'
`;
}
