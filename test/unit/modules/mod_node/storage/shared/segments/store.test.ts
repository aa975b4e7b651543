import { blockContract } from "../../blockstore/contract.ts";
import { SharedStore } from "./hosts.ts";

blockContract("shared segments", async () => (await new SharedStore().open()).blocks);
