/** The S3 server of the tests as a process of its own, with the bucket that BENCH_BUCKET names. */
import { S3Server } from "#test/support/engines/s3_server.ts";
import { report } from "./report.ts";

const server = await S3Server.start(process.env.BENCH_BUCKET ?? "bench");
report(server.port);
