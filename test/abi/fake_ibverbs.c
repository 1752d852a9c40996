/* Something to load under the name libibverbs.so.1. */
int riffle_fake_ibverbs;
