/**
 * The metrics of `observeReplication` in the text format of Prometheus (version 0.0.4, prometheus.io/docs/instrumenting/
 * exposition_formats). The meter is a small one of our own: these metrics are all read by one callback, so that nothing
 * needs to be kept between two collections.
 */
import {
  type InstrumentOptions,
  type MetricMeter,
  type MetricObserver,
  type ObservedReplication,
  observeReplication,
} from 'isthmus/drivers';

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

interface Instrument {
  readonly name: string;
  readonly kind: 'counter' | 'gauge';
  readonly help: string;
}

type Callback = (observer: MetricObserver<Instrument>) => void;

/**
 * What a scrape is answered with. Names are the metrics' own with `_` for `.`, and `_total` behind those of counters, as
 * Prometheus wants them: `isthmus_replication_entries_total`. The unit is in the help text.
 */
export function metricsText(observed: ObservedReplication): () => string {
  const meter = new TextMeter();
  observeReplication(meter, observed);
  return () => meter.text();
}

class TextMeter implements MetricMeter<Instrument> {
  private readonly instruments: Instrument[] = [];
  private readonly callbacks = new Set<Callback>();

  createObservableCounter(name: string, options: InstrumentOptions): Instrument {
    return this.create(`${name}_total`, 'counter', options);
  }

  createObservableGauge(name: string, options: InstrumentOptions): Instrument {
    return this.create(name, 'gauge', options);
  }

  addBatchObservableCallback(callback: Callback): void {
    this.callbacks.add(callback);
  }

  removeBatchObservableCallback(callback: Callback): void {
    this.callbacks.delete(callback);
  }

  text(): string {
    // Of two observations with the same labels the last one counts: a scrape that has both is refused as a whole.
    const samples = new Map<Instrument, Map<string, number>>();
    const observer: MetricObserver<Instrument> = {
      observe(instrument, value, attributes) {
        const series = samples.get(instrument) ?? new Map<string, number>();
        samples.set(instrument, series.set(labels(attributes), value));
      },
    };
    for (const callback of this.callbacks) callback(observer);
    return this.instruments.map((instrument) => family(instrument, samples.get(instrument))).join('');
  }

  private create(name: string, kind: Instrument['kind'], { description, unit }: InstrumentOptions): Instrument {
    const instrument = { name: name.replaceAll('.', '_'), kind, help: `${description} Unit: ${unit}.` };
    this.instruments.push(instrument);
    return instrument;
  }
}

/** A metric with all its series; nothing for one that has none. */
function family({ name, kind, help }: Instrument, series: ReadonlyMap<string, number> | undefined): string {
  if (series === undefined) return '';
  const samples = Array.from(series, ([set, value]) => `${name}${set} ${number(value)}\n`);
  return `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${kind}\n${samples.join('')}`;
}

function labels(attributes: Readonly<Record<string, string | number>>): string {
  const pairs = Object.entries(attributes).map(
    ([name, value]) => `${name}="${escaped(String(value)).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

/** Prometheus writes infinity in its own way. */
function number(value: number): string {
  return String(value).replace('Infinity', 'Inf');
}
