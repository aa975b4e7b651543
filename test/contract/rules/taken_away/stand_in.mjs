/**
 * Replaces one package (TAKEN_AWAY) by a stand-in that does nothing, for the process that imports
 * this file first.
 */
import { registerHooks } from "node:module";

const real = (name) => JSON.stringify(`${import.meta.resolve(name)}?real`);

/** The minimum that the host's own imports require. */
const standIns = {
  koa: `import Koa from ${real("koa")}; export default class extends Koa { compose = () => async ({ res }) => res.end(); }`,
  "@koa/router": `export default class {
    register() { return {}; } match() { return { path: [], pathAndMethod: [] }; } }`,
  "koa-static": "export default () => async () => {};",
  "serve-index": `const index = () => {}; export default index;
    index.html = (...given) => given.at(-2)({ fileList: [] }, () => {}); export { index as "module.exports" };`,
  formidable: `import { Transform } from "node:stream";
    export class MultipartParser extends Transform { initWithBoundary() {} _transform(_bytes, _coding, done) { done(); } }`,
  lilconfig: "export const lilconfig = () => ({ search: async () => null, load: async () => null });",
};

const name = process.env.TAKEN_AWAY;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === name ? { url: "taken-away:", format: "module", shortCircuit: true } : next(specifier, context),
  load: (url, context, next) =>
    url === "taken-away:" ? { source: standIns[name], format: "module", shortCircuit: true } : next(url, context),
});
