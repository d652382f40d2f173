import { SQLITE_STORES } from '../../support/stores.ts'
import { storeContract } from './store.ts'

storeContract(SQLITE_STORES.slice(1))
