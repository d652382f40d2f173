import { test } from 'bun:test'
import type { OpenStore, StoreUnderTest } from '../../support/stores.ts'

/** A store whose tests get an empty one each, which is gone at the end of the test. */
export type TestedStore = ReturnType<typeof withTest>

export const withTest = (store: StoreUnderTest) => ({
  ...store,
  test: (title: string, run: (opened: OpenStore) => Promise<void>): void =>
    test(title, async () => {
      await using opened = await store.open()
      await run(opened)
    }),
})
