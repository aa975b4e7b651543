import { html } from "htm/preact";
import { Button, Empty, Load, Page, Problem, post, Table, useAction, useApi } from "modhost/admin";

const columns = [
  { name: "app", title: "App", cell: (row) => row.app, sort: (row) => row.app },
  { name: "visits", title: "Visits", align: "end", cell: (row) => row.visits, sort: (row) => row.visits },
  { name: "do", title: "", class: "fit", cell: (row) => html`<${Reset} app=${row.app} reload=${row.reload} />` },
];

export default function Visits() {
  const visits = useApi("/visits", { every: 5000 });
  const withReload = (rows) => rows.map((row) => ({ ...row, reload: visits.reload }));
  const empty = html`<${Empty} title="No app has shown a page yet." />`;
  return html`<${Page} title="Visits" lead="Pages that apps have shown">
    <${Load} of=${visits}>${(rows) => html`<${Table} label="Visits" rows=${withReload(rows)} rowKey=${(row) => row.app} columns=${columns} empty=${empty} />`}<//>
  <//>`;
}

function Reset({ app, reload }) {
  const { start, isBusy, error } = useAction(async () => {
    await post("/visits/reset", { app });
    await reload();
  });
  return html`<${Button} kind="quiet" isBusy=${isBusy} onClick=${start}>Reset<//><${Problem} error=${error} />`;
}
