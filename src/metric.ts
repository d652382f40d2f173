import { Counter, Gauge, type Metric, type Registry } from 'prom-client'
import type { Histogram } from './domain/histogram.ts'

/** The names and values of a metric's labels. */
export type Labels = Readonly<Record<string, string | number>>

interface Described {
  readonly name: string
  readonly help: string
}

interface CounterSource extends Described {
  readonly labelNames: readonly string[]
  readonly values: () => readonly (readonly [Labels, number])[]
}

/** A counter whose values are read at each scrape. */
export function counter(registry: Registry, { name, help, labelNames, values }: CounterSource): void {
  new Counter({
    name,
    help,
    labelNames: [...labelNames],
    registers: [registry],
    collect() {
      this.reset()
      for (const [labels, count] of values()) this.inc({ ...labels }, count)
    },
  })
}

interface GaugeSource extends Described {
  readonly value: () => number | Promise<number>
}

/** A gauge whose value is read at each scrape. */
export function gauge(registry: Registry, { name, help, value }: GaugeSource): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set(await value())
    },
  })
}

interface HistogramSource extends Described {
  readonly histograms: () => readonly (readonly [Labels, Histogram])[]
}

/** A histogram that is read at each scrape. The library's own would cost each request more than all our counting. */
export function histogram(registry: Registry, { name, help, histograms }: HistogramSource): void {
  const metric = {
    name,
    get: async () => ({
      name,
      help,
      type: 'histogram',
      values: histograms().flatMap(([labels, t]) => valuesOf(name, labels, t)),
    }),
  }
  // A registry uses only these properties of a metric. Its type names the library's own classes.
  registry.registerMetric(metric as unknown as Metric)
}

/** The values of a histogram. Each bucket counts all values up to its bound. */
function valuesOf(name: string, labels: Labels, { bounds, counts, sum }: Histogram) {
  let count = 0
  const buckets = counts.map((within, index) => {
    count += within
    const le = bounds[index] ?? '+Inf'
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}
