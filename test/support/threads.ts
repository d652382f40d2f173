import { until } from './until.ts'

/** Waits until so many threads of a server listen at a port. They start a moment after it answers. */
export async function untilThreads(port: number, count: number): Promise<void> {
  // A socket that listens has state 0A.
  const listener = new RegExp(`^ *\\d+: [0-9A-F]+:${port.toString(16).toUpperCase().padStart(4, '0')} \\S+ 0A`, 'gm')
  const listening = async () => [...(await Bun.file('/proc/net/tcp').text()).matchAll(listener)].length
  await until('all threads listen', async () => (await listening()) === count)
}
