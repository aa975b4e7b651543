/**
 * The completion scripts for shells: tables of all sites, and a function that finds the site of the
 * cursor.
 */
import type { KnownNames } from "../command.ts";
import { type Candidate, type CompletionSite, ROOT } from "./sites.ts";

export type CompletionSites = ReadonlyMap<string, CompletionSite>;

/** Scripts by the name of the shell. */
export const scripts: Readonly<Record<string, (sites: CompletionSites) => string>> = { bash, zsh, fish };

/** Returns the key of a site in the tables, which may not be empty. */
const keyOf = (at: string) => (at === ROOT ? "." : `.${at}`);

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
/** Returns the kinds of names of a site's arguments; "-" stands for an argument without names. */
const kindsOf = (names: readonly (KnownNames | undefined)[]) => names.map((kind) => kind ?? "-").join(" ");
const words = (all: readonly { readonly word: string }[]) => all.map(({ word }) => word).join(" ");

/** Returns the entries of an associative array; empty ones are left out unless `all` is set. */
function rows(
  sites: CompletionSites,
  value: (site: CompletionSite) => string,
  form: (key: string, value: string) => string,
  all = false,
) {
  return [...sites]
    .map(([at, site]) => ({ key: keyOf(at), text: value(site) }))
    .filter(({ text }) => all || text !== "")
    .map(({ key, text }) => `  ${form(key, text)}`)
    .join("\n");
}

function bash(sites: CompletionSites): string {
  const table = (name: string, value: (site: CompletionSite) => string, all = false) =>
    `declare -gA _modhost_${name}=(\n${rows(sites, value, (key, text) => `[${quoted(key)}]=${quoted(text)}`, all)}\n)`;
  return `# Completion of modhost for bash 4 or later: eval "$(modhost completion bash)"
${table("options", ({ options }) => words(options), true)}
${table("words", (site) => words(site.words))}
${table("valued", ({ valued }) => valued.join(" "))}
${table("names", ({ names = [] }) => kindsOf(names))}
${table("value_names", ({ valueNames = [] }) => valueNames.join(" "))}
${table("pairs", ({ pairs = [] }) => pairs.join(" "))}
_modhost_known() {
  local name
  while IFS= read -r name; do
    [[ $name && $name == "$3"* ]] && COMPREPLY+=("$(printf %q "$name")")
  done < <(printf '%s\\n' $2; "\${COMP_WORDS[0]}" completion names "$1" 2>/dev/null)
}
_modhost() {
  local current=\${COMP_WORDS[COMP_CWORD]} site=. seen=0 word next skip= pair= i
  COMPREPLY=()
  # Bash takes a colon for the end of a word, but scopes contain colons.
  local typed=\${COMP_LINE:0:COMP_POINT} before=
  typed=\${typed##*[[:space:]]}
  if [[ $COMP_WORDBREAKS == *:* && $typed == *:* ]]; then current=$typed before=\${typed%:*}:; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ $skip ]]; then
      if [[ $pair && $word =~ ^[A-Za-z-]+$ ]]; then pair=; else skip=; fi
      continue
    fi
    if [[ $word == -* ]]; then
      [[ " \${_modhost_valued[$site]} \${_modhost_valued[.]} " == *" $word "* ]] && skip=$word
      pair=; [[ " \${_modhost_pairs[$site]} " == *" $word "* ]] && pair=1
      continue
    fi
    if [[ $site == . ]]; then next=.$word; else next="$site $word"; fi
    if [[ -v _modhost_options["$next"] ]]; then site=$next seen=0; else seen=$((seen + 1)); fi
  done
  if [[ $skip ]]; then
    for word in \${_modhost_value_names[$site]}; do
      [[ $word == "$skip="* ]] && _modhost_known "\${word#*=}" "" "$current"
    done
    return
  fi
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "\${_modhost_options[$site]}" -- "$current")
    return
  fi
  local found=\${_modhost_words[$site]} kinds=(\${_modhost_names[$site]}) kind=-
  if ((\${#kinds[@]})); then kind=\${kinds[seen < \${#kinds[@]} ? seen : \${#kinds[@]} - 1]}; fi
  if [[ $kind != - ]]; then
    _modhost_known "$kind" "$found" "$current"
  elif [[ $found ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$found" -- "$current")
  fi
  COMPREPLY=("\${COMPREPLY[@]#"$before"}")
  [[ \${#COMPREPLY[@]} == 1 && $COMPREPLY == *[:/] ]] && compopt -o nospace 2>/dev/null
}
complete -o default -F _modhost modhost
`;
}

const described = (all: readonly Candidate[]) =>
  all.map(({ word, help }) => `${word.replaceAll(":", "\\:")}:${help.replaceAll("\n", " ")}`).join("\n");

function zsh(sites: CompletionSites): string {
  const table = (name: string, value: (site: CompletionSite) => string, all = false) =>
    `typeset -gA _modhost_${name}=(\n${rows(sites, value, (key, text) => `${quoted(key)} ${quoted(text)}`, all)}\n)`;
  return `#compdef modhost
# Completion of modhost for zsh: eval "$(modhost completion zsh)", or a file _modhost in a folder of $fpath
${table("options", ({ options }) => described(options), true)}
${table("words", (site) => described(site.words))}
${table("valued", ({ valued }) => valued.join(" "))}
${table("names", ({ names = [] }) => kindsOf(names))}
${table("value_names", ({ valueNames = [] }) => valueNames.join(" "))}
${table("pairs", ({ pairs = [] }) => pairs.join(" "))}
_modhost() {
  local site=. word next skip= pair= kind=-
  integer seen=0 at
  local -a found names kinds
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ -n $skip ]]; then
      if [[ -n $pair && $word =~ ^[A-Za-z-]+$ ]]; then pair=; else skip=; fi
      continue
    fi
    if [[ $word == -* ]]; then
      [[ " \${_modhost_valued[$site]} \${_modhost_valued[.]} " == *" $word "* ]] && skip=$word
      pair=; [[ " \${_modhost_pairs[$site]} " == *" $word "* ]] && pair=1
      continue
    fi
    if [[ $site == . ]]; then next=.$word; else next="$site $word"; fi
    if (( \${+_modhost_options[$next]} )); then site=$next seen=0; else (( seen += 1 )); fi
  done
  if [[ -n $skip ]]; then
    for word in \${=_modhost_value_names[$site]}; do
      [[ $word == "$skip="* ]] && names=(\${(f)"$(\${words[1]} completion names \${word#*=} 2>/dev/null)"})
    done
    if (( $#names )); then compadd -a names; else _files; fi
    return
  fi
  if [[ \${words[CURRENT]} == -* ]]; then
    found=("\${(@f)_modhost_options[$site]}")
    _describe -o option found
    return
  fi
  [[ -n \${_modhost_words[$site]} ]] && found=("\${(@f)_modhost_words[$site]}")
  kinds=(\${=_modhost_names[$site]})
  if (( $#kinds )); then
    (( at = seen < $#kinds ? seen + 1 : $#kinds ))
    kind=\${kinds[at]}
  fi
  if [[ $kind != - ]]; then
    names=(\${(f)"$(\${words[1]} completion names $kind 2>/dev/null)"})
    found+=("\${(@)names//:/\\:}")
  fi
  if (( $#found )); then _describe word found; else _files; fi
}
if [[ $funcstack[1] == _modhost ]]; then _modhost "$@"; else compdef _modhost modhost; fi
`;
}

function fish(sites: CompletionSites): string {
  const text = (word: string) => `'${word.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", " ")}'`;
  const lines = (all: readonly Candidate[]) => all.map(({ word, help }) => `${text(word)}\\t${text(help)}`).join(" ");
  const cases = (value: (site: CompletionSite) => string) =>
    [...sites]
      .flatMap(([at, site]) => {
        const body = value(site);
        return body === "" ? [] : [`    case ${text(keyOf(at))}\n      printf '%s\\n' ${body}`];
      })
      .join("\n");
  const known = [...sites.keys()].map((at) => text(keyOf(at))).join(" ");
  const table = (name: string, value: (site: CompletionSite) => string) =>
    `function __modhost_${name}\n  switch $argv[1]\n${cases(value)}\n  end\nend`;
  return `# Completion of modhost for fish: modhost completion fish > ~/.config/fish/completions/modhost.fish
set -g __modhost_sites ${known}
${table("options", ({ options }) => lines(options))}
${table("words", (site) => lines(site.words))}
${table("valued", ({ valued }) => valued.map(text).join(" "))}
${table("names", ({ names = [] }) => kindsOf(names))}
${table("value_names", ({ valueNames = [] }) => valueNames.map(text).join(" "))}
${table("pairs", ({ pairs = [] }) => pairs.map(text).join(" "))}
function __modhost_complete
  set -l tokens (commandline -opc)
  set -l current (commandline -ct)
  set -l site .
  set -l skip ''
  set -l pair 0
  set -l seen 0
  for word in $tokens[2..-1]
    if test -n "$skip"
      if test $pair = 1; and string match -qr '^[A-Za-z-]+$' -- $word
        set pair 0
      else
        set skip ''
      end
      continue
    end
    if string match -q -- '-*' $word
      contains -- $word (__modhost_valued $site) (__modhost_valued .); and set skip $word
      set pair 0
      contains -- $word (__modhost_pairs $site); and set pair 1
      continue
    end
    set -l next "$site $word"
    test $site = .; and set next .$word
    if contains -- $next $__modhost_sites
      set site $next
      set seen 0
    else
      set seen (math $seen + 1)
    end
  end
  if test -n "$skip"
    set -l kind (string replace -f -- "$skip=" '' (__modhost_value_names $site))
    set -l known
    test -n "$kind"; and set known ($tokens[1] completion names $kind 2>/dev/null)
    if test (count $known) -gt 0
      printf '%s\\n' $known
    else
      __fish_complete_path $current
    end
    return
  end
  if string match -q -- '-*' $current
    __modhost_options $site
    return
  end
  set -l found (__modhost_words $site)
  set -l kinds (__modhost_names $site)
  if test (count $kinds) -gt 0
    set -l kind $kinds[-1]
    test $seen -lt (count $kinds); and set kind $kinds[(math $seen + 1)]
    test $kind != -; and set -a found ($tokens[1] completion names $kind 2>/dev/null)
  end
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path $current
  end
end
complete -c modhost -f -a '(__modhost_complete)'
`;
}
