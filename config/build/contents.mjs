/**
 * Describes the packages whose code the built files contain: their licences, and a bill of
 * materials (CycloneDX) for tools that look for known vulnerabilities.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Contrib, Enums, Models, Serialize, Spec } from "@cyclonedx/cyclonedx-library";

const root = fileURLToPath(new URL("../../", import.meta.url));
const licenses = new Contrib.License.Factories.LicenseFactory((text) => {
  if (!/ (?:AND|OR|WITH) /.test(text)) throw new Error(`${text} has to be the name of a licence`);
});
const manifestIn = (folder) => JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));

/**
 * Describes each version of each package once, in the order of their names.
 * @param {readonly string[]} inputs files, relative to the root of the project
 */
export function packagesOf(inputs) {
  const { packages: locked } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const folders = new Set(inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const found = [...folders].map((folder) => {
    const { name, version, license, author } = manifestIn(folder);
    const files = readdirSync(join(root, folder)).filter((file) => /^(licen[cs]e|copying|notice)\b/i.test(file));
    const text = files.map((file) => readFileSync(join(root, folder, file), "utf8").trim()).join("\n\n");
    return {
      id: `${name} ${version}`,
      name,
      version,
      license,
      text: text || [license, author?.name ?? author].filter(Boolean).join(", by "),
      integrity: locked[folder.replace(/^.*?(?=node_modules\/)/, "")]?.integrity,
    };
  });
  const byId = new Map(found.map((each) => [each.id, each]));
  return [...byId.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** Writes the licences; each text occurs once. */
export function licensesOf(packages) {
  const byText = Map.groupBy(packages, ({ text }) => text);
  const line = "-".repeat(80);
  const parted = [...byText].map(([text, of]) => `${of.map(({ id }) => id).join(", ")}\n\n${text}\n`);
  return `The files next to this one contain parts of these packages.\n\n${parted.join(`\n${line}\n\n`)}`;
}

/**
 * Returns the bill of materials as JSON. It contains no date and no serial number, so that the same
 * build makes the same file.
 */
export function bomOf(packages) {
  const { name, version, license } = manifestIn(".");
  const main = componentOf({ name, version, license });
  const bom = new Models.Bom({ metadata: new Models.Metadata({ component: main }) });
  for (const each of packages) {
    const component = componentOf(each);
    main.dependencies.add(component.bomRef);
    bom.components.add(component);
  }
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6));
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`;
}

function componentOf({ name, version, license, integrity }) {
  const [local, group] = name.split("/").reverse();
  const purl = `pkg:npm/${group === undefined ? "" : `${encodeURIComponent(group)}/`}${local}@${version}`;
  return new Models.Component(Enums.ComponentType.Library, local, {
    ...(group !== undefined && { group }),
    version,
    purl,
    bomRef: purl,
    hashes: new Models.HashDictionary(integrity === undefined ? [] : [hashOf(integrity)]),
    licenses: new Models.LicenseRepository([licenses.makeFromString(license)]),
  });
}

/** Returns the hash of the archive that npm has installed, as the lock file states it. */
function hashOf(integrity) {
  const [name, text] = integrity.split("-");
  return [Enums.HashAlgorithm[name.toUpperCase().replace("SHA", "SHA-")], Buffer.from(text, "base64").toString("hex")];
}
