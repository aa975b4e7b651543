/** Operations on the modules of the server. */
import { defineChange, defineOperation } from "./operation.ts";

const host = { type: "string", describe: "One of the virtual hosts; default: all of them" } as const;
const name = { type: "string", required: true, describe: "The module's name" } as const;

export const moduleOperations = [
  defineOperation({
    name: "modules",
    method: "GET",
    path: "/modules",
    scope: "read",
    help: "State of every module, including failed ones",
    response: { type: "array", items: { $ref: "#/components/schemas/ModuleState" } },
    run: ({ server }) => server.modules(),
  }),
  defineChange({
    name: "load",
    path: "/modules",
    help: "Load a module by name or path",
    input: { name: { ...name, describe: "The module's name, or the path of its file" }, host },
    run: ({ server, by, input }) => server.load(input.name, { by, host: input.host }),
  }),
  defineChange({
    name: "reload",
    path: "/modules/{name}/reload",
    help: "Reload a module: the running instance serves until the new one is ready",
    input: { name, host },
    run: ({ server, by, input }) => server.reload(input.name, { by, host: input.host }),
  }),
  defineChange({
    name: "unload",
    path: "/modules/{name}/unload",
    help: "Unload a module, after the modules that depend on it; open requests are finished first",
    input: { name, host },
    run: ({ server, by, input }) => server.unload(input.name, { by, host: input.host }),
  }),
];
