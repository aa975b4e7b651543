/** Compares the table of commands with the contract and the reference, in both directions. */
import {
  type Argument,
  type Command,
  type FileArgument,
  isCommand,
  type Option,
} from "#modules/mod_http_api/rpc/command.ts";
import type { Shape } from "#modules/mod_http_api/rpc/shape.ts";
import { globalOptionNames, type Table } from "#modules/mod_http_api/rpc/table.ts";
import type { Endpoint, Parameter, ReferenceCommand, ShapeForm, Surface } from "./contract.ts";

/** Returns a line for each difference: `"<endpoint>: <difference>"`. */
export function differences(table: Table, { level, endpoints, reference }: Surface): string[] {
  const found: string[] = [];
  // The help of the later level mentions experimental and deprecated features only in passing, and
  // for whole groups.
  const isMarked = level === "0.9";
  for (const [path, endpoint] of Object.entries(endpoints)) {
    const node = table.node(path);
    if (node === undefined || !isCommand(node.entry)) {
      found.push(`${path}: is not declared`);
      continue;
    }
    const own = new Map([...node.options].filter(([, { name }]) => !globalOptionNames.has(name)));
    const lines = [
      ...argumentsOf(node.entry, endpoint),
      ...optionsOf(own, endpoint, isMarked),
      ...bodyOf(node.entry.file, endpoint),
      ...(isMarked ? deprecationOf(node.entry, endpoint) : []),
      ...returnsOf(node.entry, endpoint),
      ...referenceOf(node.entry, own, endpoint, reference[path]),
    ];
    found.push(...lines.map((line) => `${path}: ${line}`));
  }
  for (const [path] of table.commands()) if (!(path in endpoints)) found.push(`${path}: is not in the contract`);
  return found;
}

type Own = ReadonlyMap<string, { readonly name: string; readonly option: Option }>;

const shown = (value: unknown) => JSON.stringify(value) ?? "none";

function argumentsOf({ arguments: declared }: Command, { parameters }: Endpoint): string[] {
  const wanted = parameters.filter(({ at }) => at !== undefined);
  const extra = declared.slice(wanted.length).map(({ name }) => `argument ${name} is not in the contract`);
  const lines = wanted.flatMap((parameter) => {
    const argument = declared[(parameter.at ?? 0) - 1];
    return argument === undefined
      ? [`argument ${parameter.at} is missing`]
      : argumentLines(argument, parameter).map((line) => `argument ${argument.name} ${line}`);
  });
  return [...lines, ...extra];
}

function argumentLines(argument: Argument, parameter: Parameter): string[] {
  const lines: string[] = [];
  if ((argument.required === true) !== (parameter.required === true)) {
    lines.push(`is ${argument.required === true ? "required" : "optional"}`);
  }
  if (argument.default !== parameter.default) {
    lines.push(`has the default ${shown(argument.default)} instead of ${shown(parameter.default)}`);
  }
  return lines;
}

function optionsOf(own: Own, { parameters }: Endpoint, isMarked: boolean): string[] {
  return parameters
    .filter(({ at }) => at === undefined)
    .flatMap((parameter) => {
      const option = own.get(parameter.name)?.option;
      const lines = option === undefined ? ["is missing"] : optionLines(option, parameter, isMarked);
      return lines.map((line) => `option ${parameter.name} ${line}`);
    });
}

function optionLines(option: Option, parameter: Parameter, isMarked: boolean): string[] {
  const type = parameter.repeatable === true ? "list" : parameter.type;
  const lines: string[] = [];
  if (option.type !== type) lines.push(`is ${option.type} instead of ${type}`);
  // A default of false is the same as no default.
  if (shown(option.default || undefined) !== shown(parameter.default || undefined)) {
    lines.push(`has the default ${shown(option.default)} instead of ${shown(parameter.default)}`);
  }
  for (const mark of ["experimental", "deprecated"] as const) {
    if (isMarked && (option[mark] === true) !== (parameter[mark] === true))
      lines.push(`is ${option[mark] === true ? "" : "not "}${mark}`);
  }
  return lines;
}

function bodyOf(file: FileArgument | undefined, { body }: Endpoint): string[] {
  if (body === undefined) return file === undefined ? [] : [`takes the file ${file.name}`];
  if (file === undefined) return ["takes no file"];
  if (body.name !== undefined && body.name !== file.name) return [`file ${file.name} instead of ${body.name}`];
  return body.many === true && file.many !== true ? [`takes one file ${file.name}`] : [];
}

function deprecationOf({ deprecated }: Command, endpoint: Endpoint): string[] {
  if ((deprecated === true) === (endpoint.deprecated === true)) return [];
  return [`is ${deprecated === true ? "" : "not "}deprecated`];
}

function returnsOf({ returns }: Command, endpoint: Endpoint): string[] {
  if (endpoint.returns === "text/plain") {
    return returns.form === "value" || returns.form === "stream" ? [`returns a ${returns.form}`] : [];
  }
  if (returns.form === "bytes" || returns.form === "nothing") return [`returns ${returns.form}`];
  const lines = endpoint.stream === true && returns.form !== "stream" ? ["is not streamed"] : [];
  return [...lines, ...shapeLines(returns.shape, endpoint.returns, "")];
}

const at = (where: string) => (where === "" ? "the result" : where.slice(1));

function shapeLines(shape: Shape, form: ShapeForm, where: string): string[] {
  if (typeof shape === "object" && "kind" in shape && shape.kind === "nullable")
    return shapeLines(shape.of, form, where);
  const wrong = [`${at(where)} is ${kindOf(shape)} instead of ${shown(form)}`];
  if (typeof form === "string") return shape === form || (shape === "bytes" && form === "string") ? [] : wrong;
  if (typeof shape === "string") return wrong;
  if (Array.isArray(form))
    return "kind" in shape ? wrong : shapeLines(shape[0], (form as readonly [ShapeForm])[0], `${where}[]`);
  if (!("kind" in shape)) return wrong;
  const fields = form as Readonly<Record<string, ShapeForm>>;
  const entry = fields["<string>"];
  if (entry !== undefined) return shape.kind === "map" ? shapeLines(shape.of, entry, `${where}{}`) : wrong;
  if (shape.kind !== "fields") return wrong;
  const missing = Object.entries(fields).flatMap(([name, of]) => {
    const declared = shape.fields[name];
    return declared === undefined
      ? [`${at(`${where}.${name}`)} is missing`]
      : shapeLines(declared, of, `${where}.${name}`);
  });
  const extra = Object.keys(shape.fields).filter((name) => !(name in fields));
  return [...missing, ...extra.map((name) => `${at(`${where}.${name}`)} is not in the contract`)];
}

function kindOf(shape: Shape): string {
  if (typeof shape === "string") return shape;
  return "kind" in shape ? shape.kind : "a list";
}

/**
 * Checks what the contract does not show: repeated values, alternative names, and options of the
 * reference only.
 */
function referenceOf(command: Command, own: Own, endpoint: Endpoint, known: ReferenceCommand | undefined): string[] {
  if (known === undefined) return ["is not known to the reference"];
  const written = [...command.arguments.map(argumentText), ...(command.file ? [fileText(command.file)] : [])];
  const lines: string[] = [];
  if (written.join(" ") !== known.arguments.join(" ")) {
    lines.push(`takes ${written.join(" ") || "nothing"} instead of ${known.arguments.join(" ") || "nothing"}`);
  }
  for (const names of known.options) {
    const meant = new Set(names.map((name) => own.get(name)?.name));
    const isInContract =
      meant.size === 1 && meant.has(undefined) && endpoint.parameters.some(({ name }) => name === names[0]);
    if ((meant.has(undefined) || meant.size > 1) && !isInContract)
      lines.push(`the names ${names.join(", ")} are not of one option`);
  }
  const names = new Set([
    ...endpoint.parameters.filter(({ at }) => at === undefined).map(({ name }) => name),
    ...known.options.flat(),
    ...(known.also ?? []),
  ]);
  for (const [name, { option }] of own) {
    if (!names.has(name) && option.hidden !== true && !(option.hiddenAliases ?? []).includes(name)) {
      lines.push(`option ${name} is known to neither contract nor reference`);
    }
  }
  return lines;
}

const argumentText = ({ name, required, variadic }: Argument) =>
  `${required === true ? `<${name}>` : `[<${name}>]`}${variadic === true ? "..." : ""}`;

const fileText = ({ name, required, many }: FileArgument) =>
  argumentText({
    name,
    help: "",
    ...(required === true ? { required } : {}),
    ...(many === true ? { variadic: many } : {}),
  });
