/* Start of a Cortex-M in QEMU: prints the class and the instructions of each sample. */
#include <stddef.h>
#include <stdint.h>
#include "net.h"
#include "samples.h"

extern uint32_t stack_top, data_start, data_end, data_load, bss_start, bss_end;
static volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010u;

void *memset(void *to, int value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((volatile uint8_t *)to)[i] = (uint8_t)value;
    }
    return to;
}

void *memcpy(void *to, const void *from, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    }
    return to;
}

static void host(uint32_t call, const void *argument)
{
    register uint32_t r0 __asm__("r0") = call;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

static void print(uint32_t number)
{
    char text[12];
    char *at = text + sizeof text - 1;
    *at = 0;
    *--at = '\n';
    do {
        *--at = (char)('0' + number % 10u);
        number /= 10u;
    } while (number != 0u);
    host(4u, at);
}

static void begin(void)
{
    uint32_t *to = &data_start, *from = &data_load;
    while (to < &data_end) {
        *to++ = *from++;
    }
    for (to = &bss_start; to < &bss_end; to++) {
        *to = 0u;
    }
    systick[1] = 0xFFFFFFu;
    systick[0] = 5u;
    for (uint32_t k = 0; k < SAMPLES; k++) {
        systick[2] = 0u;
        uint32_t label = net_run(samples[k]);
        uint32_t ticks = 0xFFFFFFu - systick[2];
        print(label);
        print(ticks);
    }
    host(0x18u, (const void *)0x20026u);
    for (;;) {
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, (const void *)begin,
};
