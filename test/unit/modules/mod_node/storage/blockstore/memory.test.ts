import { memoryBlocks } from "#node/storage/blockstore/memory.ts";
import { blockContract } from "./contract.ts";

blockContract("memory", async () => memoryBlocks());
