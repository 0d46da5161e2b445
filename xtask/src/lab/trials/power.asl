// Two frequencies, and an idle state that takes long to leave, for the processors of a guest with two CPUs: the
// emulator's own tables have neither. `iasl power.asl` (Debian: acpica-tools) makes power.aml from it. A frequency is a
// number that the kernel writes to an unused port, and the idle state is a read of one: neither has an effect on speed
// or power.
DefinitionBlock ("", "SSDT", 2, "JSCOPE", "POWER", 1)
{
    External (\_SB.CPUS.C000, DeviceObj)
    External (\_SB.CPUS.C001, DeviceObj)

    Scope (\_SB.CPUS.C000)
    {
        Name (_PPC, Zero)
        Name (_PCT, Package () {
            ResourceTemplate () { Register (SystemIO, 8, 0, 0x0A00) },
            ResourceTemplate () { Register (SystemIO, 8, 0, 0x0A00) }
        })
        // MHz, mW, us, us, what is written, what is read.
        Name (_PSS, Package () {
            Package () { 2000, 2000, 10, 10, 2, 2 },
            Package () { 1000, 1000, 10, 10, 1, 1 }
        })
        // Register, type, us, mW.
        Name (_CST, Package () {
            2,
            Package () { ResourceTemplate () { Register (FFixedHW, 0, 0, 0) }, 1, 1, 1000 },
            Package () { ResourceTemplate () { Register (SystemIO, 8, 0, 0x0A10) }, 2, 50, 500 }
        })
    }

    Scope (\_SB.CPUS.C001)
    {
        Name (_PPC, Zero)
        Name (_PCT, Package () {
            ResourceTemplate () { Register (SystemIO, 8, 0, 0x0A00) },
            ResourceTemplate () { Register (SystemIO, 8, 0, 0x0A00) }
        })
        // MHz, mW, us, us, what is written, what is read.
        Name (_PSS, Package () {
            Package () { 2000, 2000, 10, 10, 2, 2 },
            Package () { 1000, 1000, 10, 10, 1, 1 }
        })
        // Register, type, us, mW.
        Name (_CST, Package () {
            2,
            Package () { ResourceTemplate () { Register (FFixedHW, 0, 0, 0) }, 1, 1, 1000 },
            Package () { ResourceTemplate () { Register (SystemIO, 8, 0, 0x0A10) }, 2, 50, 500 }
        })
    }
}
