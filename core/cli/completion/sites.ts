/**
 * Computes which words can follow at each site of a command line, from the tables of commands and
 * options.
 */
import type { Command, CommandOption, KnownNames } from "../command.ts";

/** A word that can be typed, with its help text. */
export interface Candidate {
  readonly word: string;
  readonly help: string;
}

/** A position in a command line, after the words of a command. */
export interface CompletionSite {
  /** Commands below it, and values of its arguments. */
  readonly words: readonly Candidate[];
  readonly options: readonly Candidate[];
  /** The options that take a value. */
  readonly valued: readonly string[];
  /** Options whose value is a name, with the kind: `--explain=routes`. */
  readonly valueNames?: readonly string[];
  /** Options whose value may be two words. */
  readonly pairs?: readonly string[];
  /**
   * The kind of name of each argument, in a running server; the last is for all further arguments.
   */
  readonly names?: readonly (KnownNames | undefined)[];
}

/** The key of the program itself; the key of a command is its words with spaces between them. */
export const ROOT = "";

type Options = Readonly<Record<string, CommandOption>>;

/** Returns every site by its words; `shared` are the options of all commands. */
export async function completionSites(
  commands: readonly Command[],
  shared: Options,
): Promise<Map<string, CompletionSite>> {
  const [first] = commands;
  const sites = new Map<string, CompletionSite>();
  // A command line without a command runs the first one.
  sites.set(ROOT, { words: commands.map(candidateOf), ...optionsOf({ ...first?.options, ...shared }) });
  for (const command of commands) {
    const below = [...(command.commands ?? []), ...((await command.subcommands?.()) ?? [])];
    add(sites, command.name, { ...command, commands: below }, command.verbatim === true ? {} : shared);
  }
  return sites;
}

const candidateOf = ({ name, help }: Pick<Command, "name" | "help">): Candidate => ({ word: name, help });

type Completed = Pick<Command, "options" | "words" | "completes"> & {
  readonly commands?: readonly (Completed & Pick<Command, "name" | "help">)[];
};

/** Adds the site after a command, and sites for all commands and groups below it. */
function add(sites: Map<string, CompletionSite>, at: string, command: Completed, shared: Options): void {
  const { options, words = [], completes, commands = [] } = command;
  const names = typeof completes === "string" ? [completes] : (completes ?? []);
  sites.set(at, { words: sites.get(at)?.words ?? [], ...optionsOf({ ...options, ...shared }), names });
  for (const word of words) addWord(sites, at, { word, help: "" });
  for (const below of commands) {
    const path = below.name.split(" ");
    for (const [depth, word] of path.entries()) {
      const help = depth === path.length - 1 ? below.help : "";
      addWord(sites, [at, ...path.slice(0, depth)].join(" "), { word, help });
    }
    add(sites, `${at} ${below.name}`, below, shared);
  }
}

/**
 * Adds a word to a site. A known word keeps its position, and gets the help text if it has none.
 */
function addWord(sites: Map<string, CompletionSite>, at: string, added: Candidate): void {
  const site = sites.get(at) ?? { words: [], options: [], valued: [] };
  const known = site.words.findIndex(({ word }) => word === added.word);
  const words =
    known < 0 ? [...site.words, added] : site.words.with(known, site.words[known]?.help ? site.words[known] : added);
  sites.set(at, { ...site, words });
}

function optionsOf(options: Options): Pick<CompletionSite, "options" | "valued" | "valueNames" | "pairs"> {
  const all = Object.entries(options).flatMap(([name, { short, type, help, completes, firstOfTwo }]) => {
    const words = [`${name.length === 1 ? "-" : "--"}${name}`, ...(short === undefined ? [] : [`-${short}`])];
    // If the default of an option depends on the environment, both forms are useful.
    const negative = help.includes(`--no-${name}`) ? [`--no-${name}`] : [];
    return [...words, ...negative].map((word) => ({
      word,
      help,
      isValued: type === "string" && word !== `--no-${name}`,
      completes,
      isPair: firstOfTwo !== undefined,
    }));
  });
  return {
    options: all.map(({ word, help }) => ({ word, help })),
    valued: all.filter(({ isValued }) => isValued).map(({ word }) => word),
    valueNames: all.flatMap(({ word, completes }) => (completes === undefined ? [] : [`${word}=${completes}`])),
    pairs: all.filter(({ isPair }) => isPair).map(({ word }) => word),
  };
}
