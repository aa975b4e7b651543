import { memoryMetadata } from "#node/storage/metadata/memory.ts";
import { metadataContract } from "./contract.ts";

metadataContract("memory", async () => memoryMetadata());
