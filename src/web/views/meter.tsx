/** How fast the server makes tokens, and how full the device is: two minutes as lines. */
import { formatBytes, formatSpeed, historyLength, type Sample } from "../metrics.ts";
import { useValue } from "../value.ts";
import { usePage } from "./context.ts";

const width = 240;
const height = 48;

export function Meter() {
  const { monitor } = usePage();
  const history = useValue(monitor.history);
  const last = history.at(-1);
  if (last === undefined) {
    return <p class="nothing">The server has told no numbers yet.</p>;
  }
  const speeds = history.map(({ tokensPerSecond }) => tokensPerSecond);
  return (
    <>
      <Graph
        title="Tokens a second"
        now={formatSpeed(last.tokensPerSecond)}
        values={speeds}
        top={Math.max(10, ...speeds)}
      />
      {last.memoryBytes !== undefined && (
        <Graph
          title="Memory of the device"
          now={formatBytes(last.memoryBytes)}
          values={history.map(memoryOf)}
          top={Math.max(1, ...history.map(memoryOf)) * 1.25}
        />
      )}
    </>
  );
}

function memoryOf({ memoryBytes }: Sample): number {
  return memoryBytes ?? 0;
}

function Graph(props: {
  readonly title: string;
  readonly now: string;
  readonly values: readonly number[];
  readonly top: number;
}) {
  const { title, now, values, top } = props;
  const line = pathOf(values, top);
  return (
    <figure class="graph">
      <figcaption>
        <span>{title}</span>
        <span class="numbers">{now}</span>
      </figcaption>
      <svg
        viewBox={`0 0 ${width} ${height}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${title}: ${now}`}
      >
        <path class="area" d={`${line}V${height}H${xOf(0, values.length)}Z`} />
        <path class="line" d={line} />
      </svg>
    </figure>
  );
}

/** The newest value is at the right edge. */
function pathOf(values: readonly number[], top: number): string {
  return values
    .map((value, i) => {
      const y = height - 1 - (Math.min(value, top) / top) * (height - 3);
      return `${i === 0 ? "M" : "L"}${xOf(i, values.length)} ${y.toFixed(1)}`;
    })
    .join("");
}

function xOf(index: number, count: number): string {
  return (width - ((count - 1 - index) * width) / (historyLength - 1)).toFixed(1);
}
