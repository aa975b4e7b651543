import type { AddressInfo } from "node:net";
import Fastify from "fastify";
import { report } from "./report.ts";

const app = Fastify({ logger: process.env.LOGGER === "on" });
for (let index = 0; index < 150; index += 1) app.get(`/app${index}/hello`, async () => "hello");
await app.listen({ port: 0, host: "127.0.0.1" });
report((app.server.address() as AddressInfo).port);
