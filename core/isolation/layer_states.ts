/** Lists the layers of one sandbox: those that restrict it, and why others do not. */
import { type SandboxLayer, sandboxLayers } from "../sandbox/index.ts";
import type { SandboxLayerState } from "../types.ts";
import type { Barrier } from "./policy.ts";

export interface LayerFacts {
  /** Name of the module. */
  readonly name: string;
  /** Names of the layers that restrict its process. */
  readonly active: readonly string[];
  readonly barrier: Barrier | undefined;
}

/** `layers`: what works on this machine. */
export function layerStates(facts: LayerFacts, layers = sandboxLayers()): SandboxLayerState[] {
  // The first one is Node.js itself, without which there is no sandbox.
  const restricting = layers.filter(({ name }) => name !== "node");
  return restricting.map((layer) => {
    const { name, detail } = layer;
    const is_active = facts.active.includes(name);
    return is_active ? { name, is_active, text: detail } : { name, is_active, ...whyMissing(layer, facts) };
  });
}

/** Returns why a layer does not restrict the module, and how to get it. */
function whyMissing(
  { name, works, detail, remedy }: SandboxLayer,
  { name: module, barrier }: LayerFacts,
): Pick<SandboxLayerState, "text" | "remedy"> {
  if (!works) return { text: detail, ...(remedy !== undefined && { remedy }) };
  if (name === "namespaces") {
    return { text: "The configuration switches it off.", remedy: `Set modules.${module}.namespaces to auto.` };
  }
  // The server is root and could give it a user of its own.
  const text = `It runs as the user of the server: another user could not reach ${barrier?.path}.`;
  const open = `Let other users reach ${barrier?.path}: chmod o+r for a file, o+x for a folder.`;
  return { text, remedy: barrier?.isAboveData === true ? "Get the layer namespaces, which hides that folder." : open };
}
