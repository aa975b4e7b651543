/** For `node --import`: makes a program fail if it contacts another machine. */
import { LoopbackOnly } from "#test/support/loopback_only.ts";
import { ignoreLateCancels } from "./late_cancels.ts";

const guard = new LoopbackOnly();
process.on("exit", () => guard.check());
ignoreLateCancels();
