/** Decides which entries of the metadata name roots. `collectingHost` marks all of them. */
import { treesPrefix } from "../mfs/key_trees.ts";

const prefixes = ["pins/", "files/", treesPrefix] as const;

/** Whether a change of this entry can change the roots of a collection. */
export const isRootKey = (key: string): boolean => prefixes.some((prefix) => key.startsWith(prefix));
