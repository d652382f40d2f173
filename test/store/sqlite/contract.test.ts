import { SQLITE_STORES } from '../../support/stores.ts'
import { storeContract } from '../contract/store.ts'

storeContract(SQLITE_STORES)
