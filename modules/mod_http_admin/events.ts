/** `/admin/api/events`: streams what happens to all listeners, as server-sent events. */
import { event_stream } from "../../core/http/index.ts";
import { actAs, reasonOf } from "../../core/index.ts";
import type { EventStream, HttpEvent } from "../../core/types.ts";
import { AdminError } from "./errors.ts";
import type { Items, OwnedTopic } from "./items.ts";
import { defaultTopics } from "./topics.ts";

/** Maximum number of streams of one server, at its socket and ports together. */
const MAX_STREAMS = 100;
/** Maximum number of bytes that wait for one reader. A slower reader is disconnected. */
const MAX_WAITING_BYTES = 256 * 1024;

interface Followed {
  readonly owned: OwnedTopic;
  readonly end: () => void;
}

/**
 * All streams of a server. A topic is followed, and its events are created, only while somebody
 * listens to it.
 */
export class Streams {
  readonly #items: Items;
  readonly #listeners = new Map<string, Set<(text: string) => void>>();
  readonly #followed = new Map<string, Followed>();
  #open = 0;

  constructor(items: Items) {
    this.#items = items;
    items.follow(() => {
      for (const name of this.#listeners.keys()) this.#follow(name);
    });
  }

  /** @throws {AdminError} invalid, busy */
  open(event: HttpEvent, wanted: string | undefined): void {
    const chosen = this.#topicsOf(wanted);
    if (this.#open >= MAX_STREAMS) {
      const message = `There are ${MAX_STREAMS} event streams already: close one, or try again later`;
      throw new AdminError("busy", message, { retry_after: "30" });
    }
    const stream = event_stream(event, { max_queue_bytes: MAX_WAITING_BYTES });
    this.#open += 1;
    const leave = chosen.map((topic) => this.#join(topic, sender(stream, event, topic)));
    stream.signal.addEventListener("abort", () => {
      this.#open -= 1;
      for (const each of leave) each();
    });
    void stream.comment(`topics: ${chosen.join(", ")}`).catch(() => undefined);
  }

  #join(name: string, send: (text: string) => void): () => void {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(send);
    this.#follow(name);
    return () => {
      listeners.delete(send);
      if (listeners.size > 0) return;
      this.#listeners.delete(name);
      this.#leave(name);
    };
  }

  /**
   * Follows the current provider of the topic. After a reload another instance provides it, and
   * after an unload nobody does.
   */
  #follow(name: string): void {
    const owned = this.#items.topics().get(name);
    if (this.#followed.get(name)?.owned.topic === owned?.topic) return;
    this.#leave(name);
    if (owned === undefined) return;
    // The text is made once for all listeners.
    const emit = (value: unknown) => {
      const text = JSON.stringify(value);
      for (const send of this.#listeners.get(name) ?? []) send(text);
    };
    try {
      this.#followed.set(name, { owned, end: actAs(owned.owner, () => owned.topic(emit)) });
    } catch (error) {
      owned.owner.log.error("Cannot follow the topic %s: %s", name, reasonOf(error));
    }
  }

  #leave(name: string): void {
    const followed = this.#followed.get(name);
    this.#followed.delete(name);
    followed?.end();
  }

  #topicsOf(wanted: string | undefined): string[] {
    const known = [...this.#items.topics().keys()];
    const names = wanted === undefined ? [...defaultTopics] : wanted.split(",").map((name) => name.trim());
    const unknown = names.find((name) => !known.includes(name));
    if (unknown === undefined) return [...new Set(names)];
    throw new AdminError("invalid", `There is no topic ${JSON.stringify(unknown)}: topics are ${known.join(", ")}`);
  }
}

/**
 * Disconnects a reader that is too slow, because its waiting events would use memory without a
 * limit.
 */
function sender(stream: EventStream, { request, response }: HttpEvent, topic: string): (data: string) => void {
  const cut = () => {
    if (stream.signal.aborted) return;
    if (request.httpversion.startsWith("1")) request.conn.close();
    else response.raw.destroy();
  };
  return (data) => void stream.send({ event: topic, data }).catch(cut);
}
