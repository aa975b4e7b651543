/** All families, in the order in which they are played. */
import { family as add } from "./families/add.ts";
import { family as block } from "./families/block.ts";
import { family as dag } from "./families/dag.ts";
import { family as files } from "./families/files.ts";
import { family as gateway } from "./families/gateway.ts";
import { family as key } from "./families/key.ts";
import { family as name } from "./families/name.ts";
import { family as object } from "./families/object.ts";
import { family as pin } from "./families/pin.ts";
import type { Family } from "./family.ts";

export const families: readonly Family[] = [add, files, block, dag, object, pin, key, name, gateway];
