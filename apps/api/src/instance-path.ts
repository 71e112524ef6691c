import { InstanceId } from "@millrace/contract";
import * as z from "zod";

export const InstancePath = z.object({ id: InstanceId.meta({ description: "of the instance" }) });
