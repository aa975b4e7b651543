/** Plots over time. */
import { html } from "htm/preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { clock } from "./format.js";
import { useTheme } from "./theme.js";

/**
 * A line of a plot. `color` is the number of one of the style's colours.
 * @typedef {{ title: string, values: readonly (number | null)[], color?: 1 | 2 | 3 | 4 | 5 }}
 * Series
 */

const HEIGHT = 160;

/**
 * @typedef {{ title: string, times: readonly number[], series: readonly Series[], format: (value:
 *   number) => string, span?: number, height?: number }} PlotProps `times`: seconds since 1970;
 *   `format`: returns the text of a value; `span`: number of seconds that are shown, up to the
 *   latest time
 */

/** @param {PlotProps} props */
export function Plot(props) {
  const { title, times, series, format, height = HEIGHT } = props;
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (undefined));
  const [pointed, point] = useState(/** @type {number | null} */ (null));
  const { isDark } = useTheme();
  const names = series.map(({ title: each }) => each).join("\n");
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    let isGone = false;
    const drawn = import("uplot").then(({ default: UPlot }) => {
      if (!isGone) plot.current = new UPlot(settingsOf(props, element, point), dataOf(times, series), element);
    });
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      isGone = true;
      resized.disconnect();
      void drawn.then(() => plot.current?.destroy());
    };
  }, [names, height, isDark]);
  useEffect(() => plot.current?.setData(dataOf(times, series)), [times, series]);
  const at = pointed ?? times.length - 1;
  const shown = series.map(({ title: name, values, color = 1 }) => ({ name, color, text: textOf(values[at], format) }));
  const now = shown.map(({ name, text }) => `${name} ${text}`).join(", ");
  return html`<figure class="plot">
    <figcaption>
      <span>${title}</span>
      <span class="legend" aria-hidden="true">
        ${pointed !== null && html`<span>${clock((times[pointed] ?? 0) * 1000)}</span>`}
        ${shown.map(({ name, color, text }) => html`<span key=${name}><i class=${`line line-${color}`}></i>${name} <b>${text}</b></span>`)}
      </span>
    </figcaption>
    <div ref=${box} role="img" aria-label=${`${title}: now ${now}`}></div>
  </figure>`;
}

/** @param {number | null | undefined} value @param {(value: number) => string} format */
const textOf = (value, format) => (value === null || value === undefined ? "–" : format(value) || "–");

/**
 * @param {PlotProps} props @param {HTMLElement} element
 * @param {(at: number | null) => void} point is called with the index in `times` under the pointer
 * @returns {any}
 */
function settingsOf({ series, format, span, height = HEIGHT }, element, point) {
  const isShort = span !== undefined && span < 600;
  const style = getComputedStyle(element);
  // A canvas cannot use CSS variables, so the element resolves them.
  const color = (/** @type {string} */ name) => {
    element.style.color = `var(${name})`;
    const resolved = style.color;
    element.style.color = "";
    return resolved;
  };
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
  }));
  /** @type {(plot: unknown, low: number, high: number) => [number, number]} */
  const times = (_plot, low, high) =>
    span === undefined ? [low, high] : [(high ?? Date.now() / 1000) - span, high ?? Date.now() / 1000];
  /** @type {(plot: unknown, low: number, high: number) => [number, number]} */
  const values = (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1];
  return {
    width: element.clientWidth,
    height,
    cursor: { y: false },
    legend: { show: false },
    hooks: { setCursor: [(/** @type {any} */ { cursor }) => point(cursor.left < 0 ? null : (cursor.idx ?? null))] },
    scales: { x: { range: times }, y: { range: values } },
    axes: [
      {
        ...axis,
        size: 28,
        space: 80,
        values: (/** @type {unknown} */ _plot, /** @type {number[]} */ all) =>
          all.map((at) => clock(at * 1000).slice(0, isShort ? 8 : 5)),
      },
      {
        ...axis,
        size: 64,
        values: (/** @type {unknown} */ _plot, /** @type {number[]} */ all) => labelsOf(all, format),
      },
    ],
    series: [{}, ...lines],
  };
}

/**
 * Returns the labels of an axis. Where its steps are finer than `format` shows, only whole numbers
 * get a label.
 * @param {readonly number[]} values @param {(value: number) => string} format
 */
function labelsOf(values, format) {
  const labels = values.map(format);
  if (new Set(labels).size === labels.length) return labels;
  return labels.map((label, at) => (Number.isInteger(values[at]) ? label : ""));
}

/** @param {readonly number[]} times @param {readonly Series[]} series @returns {any} */
const dataOf = (times, series) => [times, ...series.map(({ values }) => values)];
