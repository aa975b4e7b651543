/**
 * A JSON API by a router of @koa/router, at http://localhost:5280/todo:
 *
 * ```sh
 * curl -H 'Content-Type: application/json' -d '{"title":"Milk"}' http://localhost:5280/todo
 * curl -X PATCH -H 'Content-Type: application/json' -d '{"done":true}' http://localhost:5280/todo/1
 * ```
 *
 * The host mounts the router at the module's path, lists and counts its routes, and completes its
 * responses: a status without a body gets the error page, as JSON for clients that prefer it, and a
 * body that is too large gets 413.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { json } from "node:stream/consumers";
import Router from "@koa/router";
import type { Context } from "koa";
import type { Module } from "modhost";

interface Todo {
  readonly id: number;
  title: string;
  done: boolean;
}

/**
 * The state that survives a reload. It is plain data: functions in it would belong to the instance
 * that stored them.
 */
interface State {
  todos?: Map<number, Todo>;
  /** Resolves when the last change is on the disk. */
  written?: Promise<void>;
}

export default async function todo(module: Module) {
  module.depends("http");
  const file = join(module.data_path(), "todo.json");
  // During a reload the old and the new instance use the same table, so no change is lost.
  const state = module.shared() as State;
  state.todos ??= await readTodos(file);
  const { todos } = state;

  /** Writes one after the other. Each writes the todos of its time. */
  const changed = () => {
    state.written = (state.written ?? Promise.resolve()).then(
      () => writeTodos(file, todos),
      () => writeTodos(file, todos),
    );
    return state.written;
  };
  module.unload = () => state.written;

  const router = new Router();
  router.get("/", (context) => {
    context.body = [...todos.values()];
  });
  router.post("/", async (context) => {
    const { title, done = false } = await readFields(context);
    if (title === undefined) return context.throw(400, "A todo needs a title");
    const created = { id: Math.max(0, ...todos.keys()) + 1, title, done };
    todos.set(created.id, created);
    await changed();
    context.status = 201;
    context.set("Location", `${context.originalUrl.replace(/\/?(\?.*)?$/, "")}/${created.id}`);
    context.body = created;
  });
  router.get("/:id", (context) => {
    context.body = find(context);
  });
  router.patch("/:id", async (context) => {
    const fields = await readFields(context);
    context.body = Object.assign(find(context), fields);
    await changed();
  });
  router.delete("/:id", async (context) => {
    todos.delete(find(context).id);
    await changed();
    context.status = 204;
  });

  function find(context: Context): Todo {
    const found = todos.get(Number(context.params.id));
    return found ?? context.throw(404, `There is no todo ${context.params.id}`);
  }

  module.provides("http", { middleware: router });
}

/**
 * Returns the fields that a client may set, validated. Fields that it does not send are missing.
 */
async function readFields(context: Context): Promise<{ title?: string; done?: boolean }> {
  // Not `context.is("json")`, because that checks the length, and over HTTP/2 a body may come
  // without one.
  if (context.request.type !== "application/json") return context.throw(415, "Send application/json");
  const sent = await json(context.req).catch((error: unknown) => {
    // The host responds to any other error, such as a body over the limit.
    if (!(error instanceof SyntaxError)) throw error;
    return context.throw(400, "That is no JSON");
  });
  const { title, done } = Object(sent) as Record<string, unknown>;
  if (title !== undefined && (typeof title !== "string" || title.trim() === "")) context.throw(400, "title is a text");
  if (done !== undefined && typeof done !== "boolean") context.throw(400, "done is true or false");
  return { ...(typeof title === "string" ? { title } : {}), ...(typeof done === "boolean" ? { done } : {}) };
}

async function readTodos(file: string): Promise<Map<number, Todo>> {
  try {
    const list = JSON.parse(await readFile(file, "utf8")) as Todo[];
    return new Map(list.map((entry) => [entry.id, entry]));
  } catch (error) {
    // A file that exists and cannot be read fails the load, because otherwise the next write would
    // replace it.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw error;
  }
}

/** Replaces the file in one step: a reader sees the old list or the new one. */
async function writeTodos(file: string, todos: Map<number, Todo>): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(`${file}.new`, JSON.stringify([...todos.values()]));
  await rename(`${file}.new`, file);
}
