/** Describes the faults of items that modules add to the Admin API. */
import type { AdminItem, AdminOperation } from "../../core/types.ts";

const namePattern = /^[a-z][a-z0-9_]*$/;
const pathPattern = /^(?:\/(?:[a-z0-9_.-]+|\{\w+\}))+$/;
const methods: readonly unknown[] = ["GET", "POST", "DELETE"];
const scopes: readonly unknown[] = ["read", "admin"];
const types: readonly unknown[] = ["string", "number", "boolean"];

/** Returns no sentences for a correct item. */
export function itemFaults({ operations = [], topics = {}, pages }: AdminItem): string[] {
  if (!Array.isArray(operations)) return ["operations must be a list"];
  const faults = operations.flatMap((operation) => {
    return operationFaults(operation).map((fault) => `${operation?.name}: ${fault}`);
  });
  for (const [name, topic] of Object.entries(topics)) {
    if (!namePattern.test(name)) faults.push(`the name of the topic ${name} must be in snake case`);
    if (typeof topic !== "function") faults.push(`the topic ${name} must be a function`);
  }
  if (pages !== undefined && !(pages.folder instanceof URL && isText(pages.script)))
    faults.push('pages must have a folder, such as new URL("pages/", import.meta.url), and the name of a script in it');
  return faults;
}

function operationFaults({ name, method, path, scope, help, input = {}, takes, run }: AdminOperation): string[] {
  const faults: string[] = [];
  if (!namePattern.test(name)) faults.push("name must be in snake case");
  if (!methods.includes(method)) faults.push("method must be GET, POST or DELETE");
  if (!pathPattern.test(path)) faults.push("path must have the form /a/{field}/b");
  if (!scopes.includes(scope)) faults.push("scope must be read or admin");
  if (!isText(help)) faults.push("help must be a text");
  if (typeof run !== "function") faults.push("run must be a function");
  if (takes !== undefined && (takes !== "stream" || method !== "POST"))
    faults.push('takes must be "stream", with the method POST');
  for (const [field, { type, describe }] of Object.entries(input)) {
    if (!types.includes(type)) faults.push(`the type of ${field} must be string, number or boolean`);
    if (!isText(describe)) faults.push(`describe of ${field} must be a text`);
  }
  for (const [, field = ""] of String(path).matchAll(/\{(\w+)\}/g)) {
    if (!Object.hasOwn(input, field)) faults.push(`{${field}} of the path is not declared in input`);
  }
  return faults;
}

const isText = (value: unknown) => typeof value === "string" && value !== "";
