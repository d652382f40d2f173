import { describe } from 'bun:test'
import { STORES } from '../support/stores.ts'
import { burstsContract } from './contract/bursts.ts'
import { growthContract } from './contract/growth.ts'
import { healthContract } from './contract/health.ts'
import { listContract } from './contract/list.ts'
import { plantsContract } from './contract/plants.ts'
import { revokeContract } from './contract/revoke.ts'
import { statisticsContract } from './contract/statistics.ts'
import { tokensContract } from './contract/tokens.ts'
import { usersContract } from './contract/users.ts'
import { versionsContract } from './contract/versions.ts'

describe.each(STORES)('the store, $name', (store) => {
  plantsContract(store)
  listContract(store)
  burstsContract(store)
  tokensContract(store)
  revokeContract(store)
  usersContract(store)
  healthContract(store)
  versionsContract(store)
  growthContract(store)
  statisticsContract(store)
})
