/** Plots over time. */
import { html } from "htm/preact";
import { useEffect, useRef } from "preact/hooks";

/**
 * A line of a plot. `color` is one of the style's: 1 to 5.
 * @typedef {{ title: string, values: readonly (number | null)[], color?: 1 | 2 | 3 | 4 | 5 }} Series
 */

const HEIGHT = 160;

/**
 * @typedef {{ title: string, times: readonly number[], series: readonly Series[], format: (value: number) => string,
 *   span?: number, height?: number }} PlotProps `times`: seconds since 1970; `format`: a value for people; `span`:
 *   seconds that are shown, up to the last
 */

/** @param {PlotProps} props */
export function Plot(props) {
  const { title, times, series, format, height = HEIGHT } = props;
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (undefined));
  const names = series.map(({ title: each }) => each).join("\n");
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    let isGone = false;
    const drawn = import("uplot").then(({ default: UPlot }) => {
      if (!isGone) plot.current = new UPlot(settingsOf(props, element), dataOf(times, series), element);
    });
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      isGone = true;
      resized.disconnect();
      void drawn.then(() => plot.current?.destroy());
    };
  }, [names, height]);
  useEffect(() => plot.current?.setData(dataOf(times, series)), [times, series]);
  const last = series.map(({ title: each, values }) => `${each} ${format(values.at(-1) ?? 0)}`).join(", ");
  return html`<figure class="plot"><figcaption>${title}</figcaption><div ref=${box} role="img" aria-label=${`${title}: now ${last}`}></div></figure>`;
}

/** @param {PlotProps} props @param {HTMLElement} element @returns {any} */
function settingsOf({ series, format, span, height = HEIGHT }, element) {
  const style = getComputedStyle(element);
  const color = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: color("--soft"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
    font: `12px ${style.fontFamily}`,
  };
  const lines = series.map(({ title, color: own = 1 }) => ({
    label: title,
    stroke: color(`--plot-${own}`),
    fill: series.length === 1 ? color(`--plot-${own}-fill`) : undefined,
    width: 1.5,
    points: { show: false },
    value: (/** @type {unknown} */ _plot, /** @type {number | null} */ value) => (value === null ? "–" : format(value)),
  }));
  const time = (/** @type {unknown} */ _plot, /** @type {number | null} */ at) =>
    at === null ? "" : new Date(at * 1000).toLocaleTimeString();
  /** @type {(plot: unknown, low: number, high: number) => [number, number]} */
  const times = (_plot, low, high) =>
    span === undefined ? [low, high] : [(high ?? Date.now() / 1000) - span, high ?? Date.now() / 1000];
  /** @type {(plot: unknown, low: number, high: number) => [number, number]} */
  const values = (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1];
  return {
    width: element.clientWidth,
    height,
    cursor: { y: false },
    scales: { x: { range: times }, y: { range: values } },
    axes: [
      axis,
      { ...axis, size: 64, values: (/** @type {unknown} */ _plot, /** @type {number[]} */ all) => all.map(format) },
    ],
    series: [{ value: time }, ...lines],
  };
}

/** @param {readonly number[]} times @param {readonly Series[]} series @returns {any} */
const dataOf = (times, series) => [times, ...series.map(({ values }) => values)];
