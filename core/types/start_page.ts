/** The items of `module.provides("start-page", ...)`. */

/**
 * A page that people open first. `modhost run` and the start page list it before the apps. The
 * routes of a module with such items are not listed, since its items replace them.
 */
export interface StartPageItem {
  /** One or two words, such as `dashboard`. */
  readonly name: string;
  /** The text of the link, which says what people do there: `Open the dashboard`. */
  readonly help: string;
  /**
   * Returns its URLs, the best one first, as `module.http_url()` returns them. Called each time; an
   * item without URLs is not listed.
   */
  urls(): readonly string[];
}
