/**
 * A client of the RPC in a process of its own, which is suspended from outside: it adds a folder of
 * small files over one persistent connection, and reads it. Arguments: URL, maximum number of
 * rounds, number of files, and seconds after which no new round begins. Prints a line for each
 * call, and the failures.
 */
import { Agent, type IncomingMessage, request } from "node:http";

const [url = "", rounds = "1", files = "200", lasts = "60"] = process.argv.slice(2);
const until = performance.now() + Number(lasts) * 1000;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const boundary = "stalls";

async function call(path: string, body: AsyncIterable<string> | undefined): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const headers = body === undefined ? {} : { "Content-Type": `multipart/form-data; boundary=${boundary}` };
  const sending = request(`${url}/api/v0/${path}`, { method: "POST", agent, headers }, (response: IncomingMessage) => {
    const pieces: Buffer[] = [];
    response.on("data", (piece: Buffer) => pieces.push(piece)).on("error", reject);
    response.on("end", () => {
      const all = Buffer.concat(pieces);
      if (response.statusCode === 200) resolve(all);
      else reject(new Error(`${response.statusCode}: ${all.toString("utf8", 0, 300)}`));
    });
  });
  sending.on("error", reject);
  for await (const piece of body ?? []) {
    if (!sending.write(piece)) await new Promise((go) => sending.once("drain", go));
    // One by one, as a program sends what it reads.
    await new Promise(setImmediate);
  }
  sending.end();
  return promise;
}

async function* folder(round: number): AsyncGenerator<string> {
  for (let at = 0; at < Number(files); at += 1) {
    const head = `Content-Disposition: form-data; name="file"; filename="folder%2Ffile${at}"\r\nContent-Type: application/octet-stream`;
    yield `--${boundary}\r\n${head}\r\n\r\n${`${process.pid} ${round} ${at} `.repeat(500)}\r\n`;
  }
  yield `--${boundary}--\r\n`;
}

for (let round = 0; round < Number(rounds) && (round === 0 || performance.now() < until); round += 1) {
  try {
    const added = (await call("add?progress=false&pin=false", folder(round))).toString().trim().split("\n");
    const { Hash } = JSON.parse(added.at(-1) ?? "{}") as { Hash?: string };
    if (added.length !== Number(files) + 1) throw new Error(`${added.length} lines of ${files} files`);
    console.log("added");
    const tar = await call(`get?arg=${Hash}`, undefined);
    if (tar.length < Number(files) * 1024) throw new Error(`the tar has ${tar.length} bytes`);
    console.log("got");
  } catch (error) {
    console.log(`failed: ${(error as Error).message}`);
  }
}
agent.destroy();
