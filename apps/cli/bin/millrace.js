#!/usr/bin/env node
import "@millrace/cli/main";
