import { POSTGRES_STORES } from '../../support/stores.ts'
import { storeContract } from './store.ts'

storeContract(POSTGRES_STORES)
