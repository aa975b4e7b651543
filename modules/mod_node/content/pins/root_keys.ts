/** Which entries of the metadata name roots, all of which `collectingHost` marks. */
import { treesPrefix } from "../mfs/key_trees.ts";

const prefixes = ["pins/", "files/", treesPrefix] as const;

/** Whether a change of this entry may give a collection another root. */
export const isRootKey = (key: string): boolean => prefixes.some((prefix) => key.startsWith(prefix));
