/**
 * A model of the mutable namespace. It decides whether the results of several callers fit one order
 * of their calls.
 */

/** Content by path; undefined for a directory. */
export type Tree = ReadonlyMap<string, string | undefined>;

export type Call =
  | { readonly does: "mkdir" | "rm" | "look"; readonly path: string }
  | { readonly does: "write"; readonly path: string; readonly content: string }
  | { readonly does: "cp" | "mv"; readonly path: string; readonly to: string };

/**
 * A finished call. Its result is undefined if it failed, what `look` has seen, or an empty text for
 * other calls.
 */
export interface FinishedCall {
  readonly call: Call;
  readonly result: string | undefined;
  /** When the call began and ended, as positions in the order of all callers. */
  readonly from: number;
  readonly to: number;
}

export const emptyTree: Tree = new Map();

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));
const nameOf = (path: string): string => path.slice(path.lastIndexOf("/"));
const isFolder = (tree: Tree, path: string): boolean => path === "" || (tree.has(path) && tree.get(path) === undefined);
const below = (tree: Tree, path: string) => [...tree].filter(([key]) => key === path || key.startsWith(`${path}/`));

function without(tree: Tree, path: string): Map<string, string | undefined> {
  const gone = new Set(below(tree, path).map(([key]) => key));
  return new Map([...tree].filter(([key]) => !gone.has(key)));
}

function moved(tree: Tree, from: string, to: string): Tree {
  const entries = below(tree, from).map(([key, value]) => [to + key.slice(from.length), value] as const);
  return new Map([...tree, ...entries]);
}

interface Step {
  /** Undefined if the call fails. */
  readonly tree: Tree | undefined;
  readonly result?: string;
}

const failed: Step = { tree: undefined };

/** Returns the result of `look`: the content, or the names. */
export function seen(tree: Tree, path: string): string | undefined {
  if (!isFolder(tree, path)) return tree.has(path) ? `file ${tree.get(path)}` : undefined;
  const names = [...tree.keys()].filter((key) => parentOf(key) === path && key !== "").map(nameOf);
  return `directory ${names.sort().join(" ")}`;
}

/**
 * Returns the steps of a call. Steps of other calls may come between them. A failure ends the call.
 */
function stepsOf(call: Call): ((tree: Tree) => Step)[] {
  const { path } = call;
  switch (call.does) {
    case "look":
      return [
        (tree) => {
          const result = seen(tree, path);
          return result === undefined ? failed : { tree, result };
        },
      ];
    case "mkdir":
      return [(tree) => (isFolder(tree, parentOf(path)) && !tree.has(path) ? put(tree, path, undefined) : failed)];
    case "rm":
      return [(tree) => (tree.has(path) ? { tree: without(tree, path) } : failed)];
    case "write":
      return [
        (tree) => {
          if (!isFolder(tree, parentOf(path)) || isFolder(tree, path)) return failed;
          return tree.has(path) ? { tree } : put(tree, path, "");
        },
        (tree) => (tree.has(path) && !isFolder(tree, path) ? put(tree, path, call.content) : failed),
      ];
    case "cp":
      return [
        (tree) => {
          if (!tree.has(path) || tree.has(call.to) || !isFolder(tree, parentOf(call.to))) return failed;
          return { tree: moved(tree, path, call.to) };
        },
      ];
    case "mv":
      return [(tree) => move(tree, path, call.to)];
  }
}

const put = (tree: Tree, path: string, content: string | undefined): Step => ({
  tree: new Map([...tree, [path, content]]),
});

function move(tree: Tree, from: string, requested: string): Step {
  if (!tree.has(from) || !isFolder(tree, parentOf(requested))) return failed;
  if (from === requested) return { tree };
  const to = isFolder(tree, requested) ? requested + nameOf(from) : requested;
  if (to !== requested && tree.has(to)) return failed;
  if (isFolder(tree, from) && to.startsWith(`${from}/`)) return failed;
  return { tree: without(moved(without(tree, to), from, to), from) };
}

const textOf = (tree: Tree): string => JSON.stringify([...tree].sort(([a], [b]) => (a < b ? -1 : 1)));

/**
 * Returns the states that an order of the calls can lead to. In that order each call has its
 * result, and no call comes before another that had ended when it began.
 */
export function outcomes(before: Tree, history: readonly FinishedCall[]): Map<string, Tree> {
  const steps = history.map(({ call }) => stepsOf(call));
  const found = new Map<string, Tree>();
  const tried = new Set<string>();
  /** `taken` is the number of steps that each call has done; a failed call has done all. */
  const visit = (tree: Tree, taken: readonly number[]) => {
    const key = `${taken.join()} ${textOf(tree)}`;
    if (tried.has(key)) return;
    tried.add(key);
    const open = history.map((_, at) => at).filter((at) => (taken[at] as number) < (steps[at] as unknown[]).length);
    if (open.length === 0) found.set(textOf(tree), tree);
    const firstEnd = Math.min(...open.map((at) => (history[at] as FinishedCall).to));
    for (const at of open) {
      const { result, from } = history[at] as FinishedCall;
      if (from > firstEnd) continue;
      const all = steps[at] as ((tree: Tree) => Step)[];
      const next = (taken[at] as number) + 1;
      const step = all[next - 1]?.(tree) as Step;
      if (step.tree === undefined) {
        if (result === undefined) visit(tree, taken.with(at, all.length));
      } else if (next < all.length || result === (step.result ?? "")) visit(step.tree, taken.with(at, next));
    }
  };
  visit(
    before,
    history.map(() => 0),
  );
  return found;
}
