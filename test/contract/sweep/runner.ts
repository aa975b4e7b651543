/**
 * Runs lines of the sweep on a server: each with its parameter, by each of its names, and without
 * it.
 */
import { readFile } from "node:fs/promises";
import type { Command, Option } from "#modules/mod_http_api/rpc/command.ts";
import type { RpcHost } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { call as ask } from "#test/unit/modules/mod_http_api/faults/lab.ts";
import type { Effect, Fields, Lines, Same, SentFile, ShownBy, SweepLine, SweepResponse, SweepStep } from "./line.ts";

const root = new URL("../../../", import.meta.url);

/** Returns the names of the parameters for which a command needs lines. */
export function wanted(command: Command): string[] {
  return [
    ...command.arguments.map(({ name }) => `<${name}>`),
    ...Object.keys(optionsOf(command)),
    ...(command.text === undefined ? [] : ["encoding"]),
  ];
}

const optionsOf = ({ group, options }: Command): Readonly<Record<string, Option>> => ({
  ...group?.options,
  ...options,
});

/** Returns what is wrong with the lines of a command. */
export function gaps(command: Command, lines: Lines = {}): string[] {
  const names = wanted(command);
  return [
    ...names.filter((name) => !(name in lines)).map((name) => `${name} has no line`),
    ...Object.keys(lines)
      .filter((name) => !names.includes(name))
      .map((name) => `${name} is not a parameter`),
  ];
}

export class Runner {
  readonly #host: RpcHost;
  readonly #fixtures: Fields;
  #runs = 0;

  constructor(host: RpcHost, fixtures: Fields) {
    this.#host = host;
    this.#fixtures = fixtures;
  }

  /** @throws Error with the response if the parameter does not have the effect of the line */
  async check(command: Command, name: string, line: SweepLine): Promise<void> {
    if ("test" in line) return shownElsewhere(line);
    const { aliases = [], hiddenAliases = [] } = optionsOf(command)[name] ?? {};
    const withIt = (call: string) => call;
    const without = (call: string) => takenOut(call, command, name);
    if (without(line.call) === line.call) throw new Error(`${line.call} does not contain ${name}`);
    if ("same" in line) return this.#same(line, without);
    for (const spelling of [name, ...aliases, ...hiddenAliases]) {
      const spelled =
        spelling === name ? withIt : (call: string) => call.replace(new RegExp(`([?&])${name}=`), `$1${spelling}=`);
      const { response, fields } = await this.#run(line, spelled);
      if (!fits(line, response, fields)) throw new Error(`with ${spelling}: ${response.text.slice(0, 500)}`);
    }
    const { response, fields } = await this.#run(line, without);
    const asWanted = line.otherwise === undefined ? !fits(line, response, fields) : line.otherwise.test(response.text);
    if (!asWanted) throw new Error(`without it: ${response.text.slice(0, 500)}`);
  }

  async #same(line: Same, without: (call: string) => string): Promise<void> {
    const one = await this.#ask(line.call, line.file, this.#fixtures);
    const other = await this.#ask(without(line.call), line.file, this.#fixtures);
    if (!one.response.bytes.equals(other.response.bytes) || !one.response.text.startsWith("200 ")) {
      throw new Error(`with it: ${one.response.text.slice(0, 300)}, without it: ${other.response.text.slice(0, 300)}`);
    }
  }

  async #run({ before = [], call, file, after = [] }: Effect, spelled: (call: string) => string) {
    this.#runs += 1;
    let fields: Fields = { ...this.#fixtures, n: String(this.#runs) };
    for (const step of before) {
      const done = await this.#step(step, fields);
      if (!done.response.text.startsWith("200 ")) throw new Error(`before it: ${done.response.text.slice(0, 500)}`);
      fields = done.fields;
    }
    let last = await this.#ask(spelled(call), file, fields);
    if (!last.response.text.startsWith("200 ")) return last;
    for (const step of after) last = await this.#step(step, last.fields);
    return last;
  }

  #step(step: SweepStep, fields: Fields) {
    return typeof step === "string" ? this.#ask(step, undefined, fields) : this.#ask(step[0], step[1], fields);
  }

  async #ask(
    call: string,
    file: SentFile | undefined,
    fields: Fields,
  ): Promise<{ response: SweepResponse; fields: Fields }> {
    const { content, abspath } = typeof file === "object" && "abspath" in file ? file : { content: file, abspath: "" };
    const body = typeof content === "string" ? filled(content, fields) : content;
    const headers = abspath === "" ? {} : { Abspath: filled(abspath, fields) };
    const { status, bytes, values, message } = await ask(this.#host, filled(call, fields), body, headers);
    const late = status === 200 && message !== undefined ? ` trailer: ${message}` : "";
    const text = `${status} ${bytes.length} ${bytes}${late}`;
    return { response: { bytes, text }, fields: { ...fields, ...fieldsOf(values.at(-1)) } };
  }
}

async function shownElsewhere({ test, in: file }: ShownBy): Promise<void> {
  const source = await readFile(new URL(file, root), "utf8");
  if (!source.includes(`test("${test}"`)) throw new Error(`${file} has no test "${test}"`);
}

const fits = ({ shows }: Effect, response: SweepResponse, fields: Fields): boolean =>
  typeof shows === "function" ? shows(response, fields) : shows.test(response.text);

function takenOut(call: string, { arguments: declared }: Command, name: string): string {
  const [path = "", query = ""] = call.split("?");
  const position = declared.findIndex((argument) => `<${argument.name}>` === name);
  let seen = -1;
  const remaining = query.split("&").filter((pair) => {
    const own = pair.split("=")[0];
    if (own === "arg") seen += 1;
    return position < 0 ? own !== name : own !== "arg" || seen !== position;
  });
  return `${path}?${remaining.join("&")}`;
}

function filled(text: string, fields: Fields): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => fields[name] ?? whole);
}

/** Returns the texts of a value by name, including those of the objects in it. */
function fieldsOf(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  const fields: Record<string, string> = {};
  for (const [name, item] of Object.entries(value)) {
    if (typeof item === "string") fields[name] = item;
    else if (typeof item === "object" && item !== null && "/" in item) fields[name] = String(item["/"]);
    else Object.assign(fields, fieldsOf(item));
  }
  return fields;
}
