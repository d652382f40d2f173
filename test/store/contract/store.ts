import { describe } from 'bun:test'
import type { StoreUnderTest } from '../../support/stores.ts'
import { atOnceContract } from './at-once.ts'
import { healthContract } from './health.ts'
import { listContract } from './list.ts'
import { plantsContract } from './plants.ts'
import { quotaContract } from './quota.ts'
import { statisticsContract } from './statistics.ts'
import { withTest } from './test-store.ts'
import { tokensContract } from './tokens.ts'
import { providerUsersContract, usersContract } from './users.ts'
import { versionsContract } from './versions.ts'

/** Tests all that the comments of `Store` say. Each database has its own file, so that they run at once. */
export const storeContract = (stores: readonly StoreUnderTest[]): void =>
  describe.each(stores.map(withTest))('the store, $name', (store) => {
    plantsContract(store)
    listContract(store)
    atOnceContract(store)
    quotaContract(store)
    tokensContract(store)
    usersContract(store)
    providerUsersContract(store)
    healthContract(store)
    versionsContract(store)
    statisticsContract(store)
  })
