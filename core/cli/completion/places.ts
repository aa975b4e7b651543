/** What can stand at each place of a command line, from the tables of commands and options. */
import type { Command, CommandOption, KnownNames, NodeCommand } from "../command.ts";

/** A word that can be typed, and what it is for. */
export interface Candidate {
  readonly word: string;
  readonly help: string;
}

/** Behind the words of a command. */
export interface Place {
  /** Commands below it, and words that its arguments can be. */
  readonly words: readonly Candidate[];
  readonly options: readonly Candidate[];
  /** The options behind which a value stands. */
  readonly valued: readonly string[];
  /** Of these, those whose value is a name: `--explain=routes`. */
  readonly valueNames?: readonly string[];
  /** Of these, those whose value may be two words. */
  readonly pairs?: readonly string[];
  /** What the arguments are names of, in a server that runs. */
  readonly names?: KnownNames | undefined;
}

/** Of the program itself; those of commands are their words with spaces between. */
export const ROOT = "";

type Options = Readonly<Record<string, CommandOption>>;

/** Every place, by its words; `shared` are the options of all commands. */
export async function placesOf(commands: readonly Command[], shared: Options): Promise<Map<string, Place>> {
  const [first] = commands;
  const places = new Map<string, Place>();
  // Without a command the first one is meant.
  places.set(ROOT, { words: commands.map(candidateOf), ...optionsOf({ ...first?.options, ...shared }) });
  for (const command of commands) {
    const below = await command.surface?.();
    add(places, command, "", command.verbatim === true ? {} : shared);
    if (below !== undefined) for (const [at, place] of surfacePlaces(command.name, below)) add(places, place, at);
  }
  return places;
}

const candidateOf = ({ name, help }: Command): Candidate => ({ word: name, help });

/** A command, and those below it; or what is known of a place beside that. */
function add(places: Map<string, Place>, given: Command | Place, before: string, shared: Options = {}): void {
  if (!("name" in given)) {
    const known = places.get(before);
    const words = [...(known?.words ?? []), ...given.words];
    const unique = [...new Map(words.map((each) => [each.word, each])).values()];
    places.set(before, known === undefined ? given : { ...known, words: unique });
    return;
  }
  const { name, options, words = [], completes, commands = [] } = given;
  const at = before === "" ? name : `${before} ${name}`;
  const own = words.map((word) => ({ word, help: "" }));
  const place = { words: [...own, ...commands.map(candidateOf)], ...optionsOf({ ...options, ...shared }) };
  places.set(at, { ...place, names: completes });
  for (const below of commands) add(places, below, at);
}

function optionsOf(options: Options): Pick<Place, "options" | "valued" | "valueNames" | "pairs"> {
  const all = Object.entries(options).flatMap(([name, { short, type, help, completes, firstOfTwo }]) => {
    const words = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
    // Of those whose default depends on where the program runs, both forms are of use.
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

/** Commands of a node: a place for each, and for each group of them. */
function surfacePlaces(before: string, commands: ReadonlyMap<string, NodeCommand>): Map<string, Place> {
  const places = new Map<string, { words: Candidate[]; options: Candidate[]; valued: string[] }>();
  const placeAt = (at: string) => {
    const place = places.get(at) ?? { words: [], options: [], valued: [] };
    places.set(at, place);
    return place;
  };
  for (const { path, help, options } of commands.values()) {
    const words = path.split("/");
    for (const [depth, word] of words.entries()) {
      const above = placeAt([before, ...words.slice(0, depth)].join(" "));
      const told = depth === words.length - 1 ? help : "";
      const known = above.words.findIndex((each) => each.word === word);
      if (known < 0) above.words.push({ word, help: told });
      else if (told !== "") above.words[known] = { word, help: told };
    }
    const own = placeAt([before, ...words].join(" "));
    for (const { name, aliases, kind, help, shared } of options) {
      if (shared) continue;
      const names = [name, ...aliases].map((each) => `${each.length === 1 ? "-" : "--"}${each}`);
      own.options.push(...names.map((word) => ({ word, help })));
      if (kind !== "flag") own.valued.push(...names);
    }
  }
  return places;
}
