/** Reads the option `gateway_public_gateways`. The node reads the entries in the repo's config. */
import { invalidOption } from "../../../core/index.ts";
import type { GatewaySpec } from "./public_gateways.ts";

const OPTION = "gateway_public_gateways";

type Field = readonly [isRight: (value: unknown) => boolean, form: string];

const flag: Field = [(value) => typeof value === "boolean", "true or false"];
const fields: Readonly<Record<keyof GatewaySpec, Field>> = {
  Paths: [
    (value) => Array.isArray(value) && value.every((path) => typeof path === "string" && path.startsWith("/")),
    'a list of paths, such as ["/ipfs", "/ipns"]',
  ],
  UseSubdomains: flag,
  InlineDNSLink: flag,
  NoDNSLink: flag,
  DeserializedResponses: flag,
};

/** @throws {ModhostError} OPTION_INVALID */
export function readGatewaySpecs(option: Readonly<Record<string, unknown>>): Record<string, GatewaySpec | null> {
  for (const [host, spec] of Object.entries(option)) {
    if (spec === null) continue;
    if (typeof spec !== "object" || Array.isArray(spec)) throw invalid(host, spec, "an object, or null");
    for (const [name, value] of Object.entries(spec)) {
      const field = Object.hasOwn(fields, name) ? fields[name as keyof GatewaySpec] : undefined;
      if (field === undefined) throw invalid(`${host}.${name}`, value, `one of ${Object.keys(fields).join(", ")}`);
      if (!field[0](value)) throw invalid(`${host}.${name}`, value, field[1]);
    }
  }
  return option as Record<string, GatewaySpec | null>;
}

const invalid = (at: string, value: unknown, form: string) =>
  invalidOption(`${OPTION}.${at}`, value, `it must be ${form}`);
