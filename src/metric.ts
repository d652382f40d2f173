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

/** A counter that is counted elsewhere. */
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
  /** `undefined` while there is none. */
  readonly value: () => number | undefined | Promise<number>
}

/** A gauge that is read when somebody asks. */
export function gauge(registry: Registry, { name, help, value }: GaugeSource): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      const now = await value()
      if (now === undefined) this.remove()
      else this.set(now)
    },
  })
}

interface HistogramSource extends Described {
  readonly histograms: readonly (readonly [Labels, Histogram])[]
}

/** A histogram that is counted elsewhere: the library's own would cost each request more than all that is counted of it. */
export function histogram(registry: Registry, { name, help, histograms }: HistogramSource): void {
  const metric = {
    name,
    get: async () => ({
      name,
      help,
      type: 'histogram',
      values: histograms.flatMap(([labels, t]) => valuesOf(name, labels, t)),
    }),
  }
  // All that a registry asks of a metric is this; its type names the library's own classes.
  registry.registerMetric(metric as unknown as Metric)
}

/** The values of a histogram: each bucket counts all up to its bound. */
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
