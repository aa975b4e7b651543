/**
 * Runs lines of the sweep on a server: each with its parameter, by each of its names, and without.
 */
import { readFile } from "node:fs/promises";
import type { Command, Option } from "#modules/mod_http_api/rpc/command.ts";
import type { RpcHost } from "#test/unit/modules/mod_http_api/commands/support.ts";
import { call as ask } from "#test/unit/modules/mod_http_api/faults/lab.ts";
import type { Answer, Effect, Fields, Line, Lines, Same, Sent, ShownBy, Step } from "./line.ts";

const root = new URL("../../../", import.meta.url);

/** Names of what a command needs lines for: each of its parameters. */
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

/** What is wrong with a command's lines as a table. */
export function gaps(command: Command, lines: Lines = {}): string[] {
  const names = wanted(command);
  return [
    ...names.filter((name) => !(name in lines)).map((name) => `${name} has no line`),
    ...Object.keys(lines)
      .filter((name) => !names.includes(name))
      .map((name) => `${name} is no parameter`),
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

  /**
   * @throws Error that says what the answer was when the parameter does not do what the line says
   */
  async check(command: Command, name: string, line: Line): Promise<void> {
    if ("test" in line) return shownElsewhere(line);
    const { aliases = [], hiddenAliases = [] } = optionsOf(command)[name] ?? {};
    const withIt = (call: string) => call;
    const without = (call: string) => takenOut(call, command, name);
    if (without(line.call) === line.call) throw new Error(`${line.call} has no ${name}`);
    if ("same" in line) return this.#same(line, without);
    for (const spelling of [name, ...aliases, ...hiddenAliases]) {
      const spelled =
        spelling === name ? withIt : (call: string) => call.replace(new RegExp(`([?&])${name}=`), `$1${spelling}=`);
      const { answer, fields } = await this.#run(line, spelled);
      if (!fits(line, answer, fields)) throw new Error(`with ${spelling}: ${answer.text.slice(0, 500)}`);
    }
    const { answer, fields } = await this.#run(line, without);
    const asWanted = line.otherwise === undefined ? !fits(line, answer, fields) : line.otherwise.test(answer.text);
    if (!asWanted) throw new Error(`without it: ${answer.text.slice(0, 500)}`);
  }

  async #same(line: Same, without: (call: string) => string): Promise<void> {
    const one = await this.#ask(line.call, line.file, this.#fixtures);
    const other = await this.#ask(without(line.call), line.file, this.#fixtures);
    if (!one.answer.bytes.equals(other.answer.bytes) || !one.answer.text.startsWith("200 ")) {
      throw new Error(`with it: ${one.answer.text.slice(0, 300)}, without it: ${other.answer.text.slice(0, 300)}`);
    }
  }

  async #run({ before = [], call, file, after = [] }: Effect, spelled: (call: string) => string) {
    this.#runs += 1;
    let fields: Fields = { ...this.#fixtures, n: String(this.#runs) };
    for (const step of before) {
      const done = await this.#step(step, fields);
      if (!done.answer.text.startsWith("200 ")) throw new Error(`before it: ${done.answer.text.slice(0, 500)}`);
      fields = done.fields;
    }
    let last = await this.#ask(spelled(call), file, fields);
    if (!last.answer.text.startsWith("200 ")) return last;
    for (const step of after) last = await this.#step(step, last.fields);
    return last;
  }

  #step(step: Step, fields: Fields) {
    return typeof step === "string" ? this.#ask(step, undefined, fields) : this.#ask(step[0], step[1], fields);
  }

  async #ask(call: string, file: Sent | undefined, fields: Fields): Promise<{ answer: Answer; fields: Fields }> {
    const { content, abspath } = typeof file === "object" && "abspath" in file ? file : { content: file, abspath: "" };
    const body = typeof content === "string" ? filled(content, fields) : content;
    const headers = abspath === "" ? {} : { Abspath: filled(abspath, fields) };
    const { status, bytes, values, message } = await ask(this.#host, filled(call, fields), body, headers);
    const late = status === 200 && message !== undefined ? ` trailer: ${message}` : "";
    const text = `${status} ${bytes.length} ${bytes}${late}`;
    return { answer: { bytes, text }, fields: { ...fields, ...fieldsOf(values.at(-1)) } };
  }
}

async function shownElsewhere({ test, in: file }: ShownBy): Promise<void> {
  const source = await readFile(new URL(file, root), "utf8");
  if (!source.includes(`test("${test}"`)) throw new Error(`${file} has no test "${test}"`);
}

const fits = ({ shows }: Effect, answer: Answer, fields: Fields): boolean =>
  typeof shows === "function" ? shows(answer, fields) : shows.test(answer.text);

function takenOut(call: string, { arguments: declared }: Command, name: string): string {
  const [path = "", query = ""] = call.split("?");
  const place = declared.findIndex((argument) => `<${argument.name}>` === name);
  let seen = -1;
  const kept = query.split("&").filter((pair) => {
    const own = pair.split("=")[0];
    if (own === "arg") seen += 1;
    return place < 0 ? own !== name : own !== "arg" || seen !== place;
  });
  return `${path}?${kept.join("&")}`;
}

function filled(text: string, fields: Fields): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => fields[name] ?? whole);
}

/** Texts of a value by name; of the objects in it, too. */
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
