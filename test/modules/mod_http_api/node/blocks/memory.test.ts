import { memoryBlocks } from "../../../../../modules/mod_http_api/node/blocks/memory.ts";
import { blockContract } from "./contract.ts";

blockContract("memory", async () => memoryBlocks());
