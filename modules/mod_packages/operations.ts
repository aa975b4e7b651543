/** The operations of the Admin API on installed modules. */
import { defineChange, defineOperation, HttpError, permissionFault, reasonOf } from "../../core/index.ts";
import type { AdminOperation, Change, ModulePermissions, ModuleRun, Server } from "../../core/types.ts";
import type { Packages } from "./packages.ts";

const module = { type: "string", required: true, describe: "The name of the module" } as const;
const runs = ["sandboxed", "isolated", "trusted"] as const satisfies ModuleRun[];

/** Without `packages`, the operations can be listed but not run. */
export function operationsOf(packages: Packages = {} as Packages): readonly AdminOperation[] {
  return [...readingOperations(packages), ...fetchingOperations(packages), ...changes(packages)];
}

const readingOperations = (packages: Packages): readonly AdminOperation[] => [
  defineOperation({
    name: "packages",
    method: "GET",
    path: "/packages",
    scope: "read",
    help: "The modules in modules.lock, with their versions and permissions",
    response: { type: "array", items: { $ref: "#/components/schemas/PackageState" } },
    run: () => explained(() => packages.list()),
  }),
  defineOperation({
    name: "packages_verify",
    method: "GET",
    path: "/packages/verify",
    scope: "read",
    help: "Compare the files of installed modules with those that were installed; the changed, missing and added files by module",
    response: { type: "object" },
    run: () => explained(() => packages.verify()),
  }),
];

const fetchingOperations = (packages: Packages): readonly AdminOperation[] => [
  defineOperation({
    name: "packages_fetch",
    method: "POST",
    path: "/packages/fetch",
    scope: "admin",
    help: "Fetch and check a module, and describe it: nothing of it runs before packages_install",
    input: {
      source: {
        type: "string",
        required: true,
        describe: "An npm package with a range, such as modhost-mod-shop@^1; through the admin socket also a path",
      },
      allow_lower: { type: "boolean", describe: "Accept a version that is lower than the installed one" },
    },
    response: { $ref: "#/components/schemas/PackageOffer" },
    run: ({ input: { source, allow_lower: allowLower = false }, viaSocket }) => {
      // A token must not let its owner read files of the server.
      if (!viaSocket && /^(?:file:|[./\\~])|\.t(?:ar\.)?gz$/.test(source))
        throw new HttpError(403, "A file or a folder is accepted only from callers of the admin socket");
      return explained(() => packages.fetch(source, { allowLower }));
    },
  }),
  defineOperation({
    name: "packages_fetch_locked",
    method: "POST",
    path: "/packages/fetch-locked",
    scope: "admin",
    help: "Fetch what modules.lock names and what is missing or changed; the names of these modules",
    response: { type: "array", items: { type: "string" } },
    run: () => explained(() => packages.fetchLocked()),
  }),
];

const changes = (packages: Packages): readonly AdminOperation[] => [
  defineChange({
    name: "packages_install",
    path: "/packages",
    help: "Install a fetched module with the permissions that are agreed to; the installed version serves until the new one is ready",
    input: {
      module,
      tree: { type: "string", required: true, describe: "The field tree of the response of packages_fetch" },
      grant: {
        type: "string",
        required: true,
        maxLength: 65_536,
        describe: "The agreed permissions as JSON; everything else is refused",
      },
      run: { type: "string", values: runs, describe: "How it runs; default: sandboxed" },
    },
    run: async ({ server, by, input: { module: name, tree, grant, run = "sandboxed" } }) => {
      const agreed = { grant: permissionsIn(grant), run: run as ModuleRun };
      const version = await explained(async () => packages.versionOf(name, tree));
      const what = `install ${name} ${version}`;
      return saved(server, { by, what }, (save) => packages.install(name, tree, agreed, save));
    },
  }),
  defineChange({
    name: "packages_remove",
    path: "/packages/{module}/remove",
    help: "Remove an installed module; its data stays",
    input: { module },
    run: ({ server, by, input: { module: name } }) =>
      saved(server, { by, what: `remove ${name}` }, (save) => packages.remove(name, save)),
  }),
  defineChange({
    name: "packages_rollback",
    path: "/packages/{module}/rollback",
    help: "Return to the version that was installed before; a second call undoes the first",
    input: { module },
    run: ({ server, by, input: { module: name } }) =>
      saved(server, { by, what: `roll back ${name}` }, (save) => packages.rollBack(name, save)),
  }),
];

class NotSavedError extends Error {}

/** Resolves to the record of the change that saves the lock file. */
async function saved(
  server: Server,
  record: { readonly by: string; readonly what: string },
  work: (save: (text: string) => Promise<void>) => Promise<unknown>,
): Promise<Change> {
  const { etag = "" } = await server.installed.file();
  let change: Change | undefined;
  const save = async (text: string) => {
    change = await server.installed.save(text, etag, record);
    if (change.result !== "done") throw new NotSavedError(record.what);
  };
  await explained(() => work(save)).catch((error: unknown) => {
    if (change === undefined || change.result === "done") throw error;
  });
  return change as unknown as Change;
}

function permissionsIn(json: string): ModulePermissions {
  try {
    const value: unknown = JSON.parse(json);
    const fault = permissionFault(value);
    if (fault === undefined) return value as ModulePermissions;
    throw new HttpError(400, `The field grant is no list of permissions: ${fault}`);
  } catch (error) {
    if (error instanceof SyntaxError) throw new HttpError(400, `The field grant is not JSON: ${error.message}`);
    throw error;
  }
}

/** Errors of packages are for the caller. */
async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof NotSavedError || error instanceof HttpError) throw error;
    throw new HttpError(422, reasonOf(error));
  }
}
