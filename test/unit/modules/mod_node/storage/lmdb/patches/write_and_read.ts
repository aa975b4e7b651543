/**
 * Opens, writes and reads the given environments, and prints the result of each:
 * `node write_and_read.ts FOLDER...`.
 */
import { EnvironmentDamaged, openEnvironment } from "#node/storage/lmdb/open.ts";

for (const folder of process.argv.slice(2)) {
  try {
    const environment = await openEnvironment(folder);
    const table = environment.table("one");
    for (let round = 0; round < 3; round += 1) {
      await environment.write(() => {
        for (let at = 0; at < 200; at += 1) table.put(Buffer.from(`${round} ${at}`), Buffer.alloc(100, round));
      });
    }
    for (const { value } of table.getRange()) if (value.length === 0) throw new Error("an empty value");
    await environment.close();
    console.log("written");
  } catch (error) {
    if (!(error instanceof EnvironmentDamaged)) throw error;
    console.log("damaged");
  }
}
