/** Generates `config/modhost.schema.json`, with which editors check a config file. */
import type { OptionDeclaration, OptionDeclarations } from "#core/types.ts";
import { type OptionSection, optionsNotice } from "./sections.ts";

export function schema(all: readonly OptionSection[]): object {
  const options = all.flatMap((section) => Object.entries(section.options));
  const properties = Object.fromEntries(options.map(([name, option]) => [name, property(option)]));
  const perHost = options.filter(([, option]) => option.per_host !== false).map(([name]) => name);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Configuration of modhost",
    $comment: optionsNotice,
    type: "object",
    properties: {
      ...properties,
      hosts: { ...properties.hosts, additionalProperties: { $ref: "#/$defs/host" } },
    },
    $defs: {
      host: {
        type: ["object", "null"],
        properties: Object.fromEntries(perHost.map((name) => [name, { $ref: `#/properties/${name}` }])),
      },
    },
  };
}

function property(option: OptionDeclaration): Record<string, unknown> {
  const given = option.default === undefined ? {} : { default: option.default };
  const secret = option.secret === undefined ? {} : { writeOnly: true };
  return { description: option.describe, ...form(option), ...given, ...secret };
}

function form({ type, min, max, values, entries, fields }: OptionDeclaration): Record<string, unknown> {
  const bounds = { ...(min !== undefined && { minimum: min }), ...(max !== undefined && { maximum: max }) };
  const oneOrMore = (item: object) => ({ anyOf: [item, { type: "array", items: item }] });
  switch (type) {
    case "number":
    case "integer":
      return { type, ...bounds };
    case "boolean":
      return { type };
    case "period":
      return {
        anyOf: [
          { type: "number", minimum: 0, ...bounds },
          { type: "string", pattern: "^\\d+(\\.\\d+)? ?(ms|s|m|h|d|w)?$" },
        ],
      };
    case "size":
      return {
        anyOf: [
          { type: "integer", minimum: 0, ...bounds },
          { type: "string", pattern: "^\\d+(\\.\\d+)? ?([kKmMgGtT]i?)?[bB]?$" },
        ],
      };
    case "url":
      return { type: "string", format: "uri", pattern: "^https?://" };
    case "enum":
      return { enum: [...(values ?? [])] };
    case "strings":
      return oneOrMore({ type: "string" });
    case "port":
      return { type: "integer", minimum: 0, maximum: 65_535 };
    case "ports":
      return oneOrMore({ type: "integer", minimum: 0, maximum: 65_535 });
    case "object":
      return fields === undefined ? { type, ...(entries && { additionalProperties: entry(entries) }) } : entry(fields);
    case "any":
      return {};
    default:
      return { type: "string" };
  }
}

function entry(fields: OptionDeclarations): Record<string, unknown> {
  const all = Object.entries(fields);
  return {
    type: "object",
    properties: Object.fromEntries(all.map(([name, field]) => [name, property(field)])),
    required: all.filter(([, field]) => field.default === undefined && field.required !== false).map(([name]) => name),
    additionalProperties: false,
  };
}
