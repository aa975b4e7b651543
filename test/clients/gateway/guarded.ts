/** For `node --import`: the program fails when it has asked anything but this machine. */
import { LoopbackOnly } from "#test/support/loopback_only.ts";
import { hearLateCancels } from "./late_cancels.ts";

const guard = new LoopbackOnly();
process.on("exit", () => guard.check());
hearLateCancels();
