import { memoryMetadata } from "../../../../../modules/mod_http_api/node/metadata/memory.ts";
import { metadataContract } from "./contract.ts";

metadataContract("memory", async () => memoryMetadata());
